"""A library by its place: the same one in every process, or an error."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from library_folders import write

from docmind_lab.core.errors import RecordError
from docmind_lab.docmind.documents import LibraryPlace, index_folder, store
from docmind_lab.docmind.documents.store import Manifest
from docmind_lab.docmind.system import named_corpus


def indexed(folder: Path, **texts: str) -> Path:
    write(folder, {f"{name}.md": text for name, text in texts.items()})
    index_folder(folder)
    return folder


def test_a_place_opens_the_library_it_was_made_of_wherever_it_is_told(tmp_path: Path) -> None:
    place = LibraryPlace.of(indexed(tmp_path / "papers", a="The warden closes the sluice.", b="A buoy costs a crown."))
    told = pickle.loads(pickle.dumps(place))
    assert told == place
    assert (told.documents, told.passages) == (2, 2)
    assert told.open().topics == ("a.md", "b.md")
    assert named_corpus(told).collection == told.name == str(told)


def test_a_place_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed(tmp_path / "papers", a="The warden closes the sluice.")
    monkeypatch.chdir(tmp_path)
    place = LibraryPlace.of("papers")
    monkeypatch.chdir("/")
    assert place.open().topics == ("a.md",)


def test_equal_libraries_are_equal_wherever_they_are(tmp_path: Path) -> None:
    one, copy, other = (
        LibraryPlace.of(indexed(tmp_path / name, a=text))
        for name, text in (("x", "Same."), ("y", "Same."), ("z", "Not."))
    )
    assert one == copy
    assert hash(one) == hash(copy)
    assert one != other


def test_a_library_that_was_changed_meanwhile_is_not_taken_for_the_one_that_was_asked(tmp_path: Path) -> None:
    place = LibraryPlace.of(indexed(tmp_path, a="The warden closes the sluice."))
    indexed(tmp_path, a="Nobody closes the sluice any more.")
    with pytest.raises(RecordError, match=r"was brought up to date meanwhile, .*; begin again"):
        place.open()


def test_an_interrupted_index_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = indexed(tmp_path, a="The warden closes the sluice.") / ".docmind"
    whole = store.read_manifest(folder)
    assert whole is not None
    store.write_manifest(folder, Manifest(whole.documents, complete=False))
    with pytest.raises(RecordError, match=r"was interrupted and lacks documents; finish it: `docmind-lab index "):
        LibraryPlace.of(tmp_path)


def test_an_index_without_a_document_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"empty.md": ""})
    index_folder(tmp_path)
    with pytest.raises(RecordError, match="holds no document"):
        LibraryPlace.of(tmp_path)
