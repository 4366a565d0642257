"""An index survives whatever stops the one who writes it, and a reader never sees a mixture."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import killed_runs
import pytest
from library_folders import contents, write

from docmind_lab.core.errors import RecordError
from docmind_lab.docmind.documents import index_folder, open_library, store

FILES = {"a.md": "# A\n\nOf pumps.\n", "b.txt": "Of valves.", "c.html": "<p>Of pipes.</p>"}


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run(
        [sys.executable, killed_runs.__file__, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write(tmp_path / "papers", FILES)
    return tmp_path / "papers"


def test_whenever_an_update_is_killed_the_index_is_the_old_or_the_new_one(killed: dict[str, Any]):
    seen = [row["found"] for row in killed["updates"]]
    assert len(seen) > 10
    # Old until one step, new from there on: there is an instant at which it changes.
    changed_at = seen.index(killed["new"])
    assert changed_at > 0
    assert seen == [killed["old"]] * changed_at + [killed["new"]] * (len(seen) - changed_at)


def test_whenever_a_first_run_is_killed_there_is_no_index_or_a_whole_one(killed: dict[str, Any]):
    seen = [row["found"] for row in killed["first runs"]]
    assert len(seen) > 10
    assert {"none", killed["new"]} == set(seen)


def test_the_run_after_a_killed_one_makes_the_index_a_fresh_one_without_leftovers(killed: dict[str, Any]):
    assert all(row["mended"] for row in killed["updates"] + killed["first runs"])


def stop_at(name: str):
    def progress(done: int, total: int, next_name: str) -> None:
        if next_name == name:
            raise KeyboardInterrupt

    return progress


def test_after_ctrl_c_the_finished_documents_are_there_and_the_index_says_it_is_incomplete(source: Path):
    with pytest.raises(KeyboardInterrupt):
        index_folder(source, progress=stop_at("c.html"))
    library = open_library(source)
    assert library.topics == ("a.md", "b.txt")
    assert not library.complete
    report = index_folder(source)
    assert (report.unchanged, report.added) == (("a.md", "b.txt"), ("c.html",))
    assert open_library(source).complete


def test_ctrl_c_in_an_update_keeps_the_documents_that_were_not_reached(source: Path):
    index_folder(source)
    write(source, {"a.md": "# A\n\nOf motors.\n", "c.html": "<p>Of wires.</p>"})
    with pytest.raises(KeyboardInterrupt):
        index_folder(source, progress=stop_at("b.txt"))
    assert [chunk.text for chunk in open_library(source).chunks] == ["Of motors.", "Of valves.", "Of pipes."]


def test_work_of_a_run_that_died_is_not_done_again(source: Path, monkeypatch: pytest.MonkeyPatch):
    def die(folder: Path, manifest: store.Manifest) -> None:
        raise SystemExit

    with monkeypatch.context() as context:
        context.setattr(store, "write_manifest", die)
        with pytest.raises(SystemExit):
            index_folder(source)
    with pytest.raises(RecordError, match="holds no index"):
        open_library(source)
    monkeypatch.setattr(store, "write_passages", lambda *arguments: pytest.fail("parsed again"))
    assert index_folder(source).documents == 3


def test_half_a_file_of_a_run_that_died_is_never_read(source: Path):
    index_folder(source)
    passages = source / ".docmind/passages"
    whole = contents(source / ".docmind")
    for path in sorted(passages.iterdir()):
        path.write_bytes(path.read_bytes()[:-20])
    (source / ".docmind/library.json").unlink()
    index_folder(source)
    assert contents(source / ".docmind") == whole


def test_leftovers_are_swept_away_and_other_files_are_not(source: Path):
    index_folder(source)
    index = source / ".docmind"
    write(index, {f"passages/{'0' * 32}.jsonl": "old", f"passages/.{'1' * 32}.jsonl.tmp": "half", "passages/note": "x"})
    write(index, {".library.json.tmp": "half"})
    index_folder(source)
    left = set(contents(index))
    assert "passages/note" in left
    assert not [name for name in left if "tmp" in name or "0" * 32 in name]


def test_a_missing_passage_file_is_made_again(source: Path):
    index_folder(source)
    before = contents(source / ".docmind")
    next((source / ".docmind/passages").iterdir()).unlink()
    with pytest.raises(RecordError, match="is missing; index the documents again"):
        open_library(source)
    index_folder(source)
    assert contents(source / ".docmind") == before


def test_a_reader_that_an_update_overtakes_gets_the_new_index_whole(source: Path, monkeypatch: pytest.MonkeyPatch):
    index_folder(source)
    read_passages, overtaken = store.read_passages, []

    def overtake(folder: Path, key: str) -> store.Passages:
        if not overtaken:
            overtaken.append(key)
            write(source, {"a.md": "# A\n\nOf motors.\n", "b.txt": "Of levers."})
            index_folder(source)
        return read_passages(folder, key)

    monkeypatch.setattr(store, "read_passages", overtake)
    assert [chunk.text for chunk in open_library(source).chunks] == ["Of motors.", "Of levers.", "Of pipes."]
    assert overtaken
