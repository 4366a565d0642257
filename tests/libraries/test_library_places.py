"""A library by its place: the same one in every process, or an error."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
from langchain_core.documents import Document

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.systems.base.documents import LibraryPlace, folder, library_of_documents, read_library
from docmind_lab.systems.base.documents.library import named_corpus


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files by their relative paths."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def folder_of(folder: Path, **texts: str) -> Path:
    write(folder, {f"{name}.md": text for name, text in texts.items()})
    return folder


def test_a_place_opens_the_library_it_was_made_of_wherever_it_is_told(tmp_path: Path) -> None:
    place = LibraryPlace.of(
        folder_of(tmp_path / "papers", a="The warden closes the sluice.", b="A buoy costs a crown.")
    )
    told = pickle.loads(pickle.dumps(place))
    assert told == place
    assert (told.documents, told.passages) == (2, 2)
    assert told.open().topics == ("a.md", "b.md")
    assert named_corpus(told).collection == told.name == str(told)


def test_a_place_is_found_from_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "papers", a="The warden closes the sluice.")
    monkeypatch.chdir(tmp_path)
    place = LibraryPlace.of("papers")
    monkeypatch.chdir("/")
    assert place.open().topics == ("a.md",)


def test_equal_libraries_are_equal_wherever_they_are(tmp_path: Path) -> None:
    one, copy, other = (
        LibraryPlace.of(folder_of(tmp_path / name, a=text))
        for name, text in (("x", "Same."), ("y", "Same."), ("z", "Not."))
    )
    assert one == copy
    assert hash(one) == hash(copy)
    assert one != other


def test_a_library_that_was_changed_meanwhile_is_not_taken_for_the_one_that_was_asked(tmp_path: Path) -> None:
    place = LibraryPlace.of(folder_of(tmp_path, a="The warden closes the sluice."))
    folder_of(tmp_path, a="Nobody closes the sluice any more.")
    with pytest.raises(RecordError, match=r"have changed meanwhile, .*; begin again"):
        place.open()


def test_a_folder_whose_document_has_no_text_is_refused_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, {"empty.md": "", "void.txt": "", "full.md": "A word."})
    with pytest.raises(
        ConfigurationError, match=r"empty\.md holds no text: move it out .*; 1 other file cannot be used"
    ):
        LibraryPlace.of(tmp_path)


FILES = {
    "a.md": "# A\n\nOf pumps. See [b](sub/b.md), [again](sub/b.md#x), [gone](gone.md), [me](a.md), [c](c).\n",
    "c.txt": "Of valves.",
    "sub/b.md": "# B\n\nOf pipes, [valves](../c.txt) and [more](https://example.org/).\n",
}


def test_chunks_are_named_by_document_and_ordinal_and_references_are_links(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    library = read_library(tmp_path)
    assert [(chunk.id, chunk.topic, chunk.section) for chunk in library.chunks] == [
        ("a.md#1", "a.md", "A"),
        ("c.txt#1", "c.txt", "c"),
        ("sub/b.md#1", "sub/b.md", "B"),
    ]
    assert library.references == {"a.md": ("sub/b.md", "c.txt"), "sub/b.md": ("c.txt",)}


def test_documents_of_langchain_are_a_library_whose_pages_are_sections() -> None:
    pages = [
        Document(page_content="Of pumps.", metadata={"source": "papers/a.pdf", "page": 0}),
        Document(page_content="Of valves.", metadata={"source": "papers/a.pdf", "page": 1}),
        Document(page_content="Of pipes."),
    ]
    library = library_of_documents(pages)
    assert [(chunk.id, chunk.text) for chunk in library.chunks] == [
        ("a.pdf#1", "Of pumps."),
        ("a.pdf#2", "Of valves."),
        ("document-3#1", "Of pipes."),
    ]
    assert "papers" not in str(library.chunks), "where the folder is stands in no citation"
    with pytest.raises(ConfigurationError, match="none of them has a text"):
        library_of_documents([Document(page_content=" ")])


def test_documents_of_one_name_in_two_folders_are_two() -> None:
    """Their citations went to one document, and a recall counted both as found."""
    pages = [Document(page_content=f"Of {name}.", metadata={"source": f"/home/me/{name}/a.md"}) for name in ("b", "c")]
    assert library_of_documents(pages).topics == ("b/a.md", "c/a.md")


def test_hidden_files_other_kinds_and_links_to_folders_inside_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "A.", ".b.md": "B.", ".c/d.md": "D.", "e.pdf": b"%PDF", "f/g.TXT": "G."})
    (tmp_path / "h").symlink_to(tmp_path / "f")
    assert read_library(tmp_path).topics == ("a.md", "f/g.TXT")


def test_links_that_leave_the_folder_files_above_the_limit_and_what_is_no_file_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "MAX_FILE_BYTES", 1000)
    write(tmp_path, {"papers/a.md": "A.", "out/secret.md": "S."})
    papers = tmp_path / "papers"
    for name, make, says in (
        ("b.md", lambda path: path.symlink_to(tmp_path / "out" / "secret.md"), "is a link that leaves the folder"),
        ("c", lambda path: path.symlink_to(tmp_path / "out"), "is a link that leaves the folder"),
        ("d.md", lambda path: path.write_text("x" * 2000), "has 0.002 MB, and the limit is 0.001 MB: split it"),
        ("e.md", lambda path: path.symlink_to(papers / "e.md"), "cannot be read"),
        ("f.md", os.mkfifo, "is not a file: move it out of the folder"),
    ):
        make(papers / name)
        with pytest.raises(ConfigurationError, match=f"{name} {says}"):
            read_library(papers)
        (papers / name).unlink()
    assert read_library(papers).topics == ("a.md",)
