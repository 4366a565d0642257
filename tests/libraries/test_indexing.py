"""Indexing a folder: what is read again and what is not, what is left out, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from library_folders import A_WHILE_AGO_S, contents, write

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.docmind.documents import index_folder, indexing, open_library, readers
from docmind_lab.docmind.documents.store import locked

FILES = {
    "a.md": "# A\n\nOf pumps. See [b](sub/b.txt).\n",
    "sub/b.txt": "Of valves.",
    "c.html": "<h1>C</h1><p>Of pipes.</p>",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    write(folder, FILES)
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the documents that were opened, in order."""
    names: list[str] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (names.append(path.name), read_bytes(path))[1])
    return names


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the documents that were parsed, in order."""
    names: list[str] = []

    def read_document(name: str, data: bytes) -> object:
        names.append(name)
        return readers.read_document(name, data)

    monkeypatch.setattr(indexing, "read_document", read_document)
    return names


def test_a_first_index_holds_every_document_inside_the_folder(source: Path):
    report = index_folder(source)
    assert report.folder == source / ".docmind"
    assert report.added == ("a.md", "c.html", "sub/b.txt")
    assert str(report) == "3 documents, 3 passages: 3 new, 0 changed, 0 unchanged, 0 removed"
    assert report.problems == ()


def test_an_unchanged_file_is_not_opened_again(source: Path, opened: list[str]):
    index_folder(source)
    before = contents(source / ".docmind")
    opened.clear()
    report = index_folder(source)
    assert opened == []
    assert (report.unchanged, report.added, report.changed) == (("a.md", "c.html", "sub/b.txt"), (), ())
    assert contents(source / ".docmind") == before


def test_a_file_with_a_new_date_and_the_same_bytes_is_not_parsed_again(source: Path, parsed: list[str]):
    index_folder(source)
    parsed.clear()
    os.utime(source / "a.md", (A_WHILE_AGO_S + 60, A_WHILE_AGO_S + 60))
    assert index_folder(source).changed == ()
    assert parsed == []


def test_changed_new_and_deleted_files_are_told_apart(source: Path, parsed: list[str]):
    index_folder(source)
    parsed.clear()
    write(source, {"a.md": "# A\n\nOf motors.\n", "d.rst": "D\n=\n\nOf wires.\n"})
    (source / "c.html").unlink()
    report = index_folder(source)
    assert (report.added, report.changed, report.unchanged, report.removed) == (
        ("d.rst",),
        ("a.md",),
        ("sub/b.txt",),
        ("c.html",),
    )
    assert parsed == ["a.md", "d.rst"]
    assert open_library(source).topics == ("a.md", "d.rst", "sub/b.txt")


def test_a_change_that_keeps_size_and_date_is_noticed(source: Path):
    index_folder(source)
    write(source, {"sub/b.txt": "Of levers."})
    assert index_folder(source).changed == ("sub/b.txt",)


def test_a_file_whose_date_is_now_or_later_is_opened_again_though_its_dates_agree(source: Path, opened: list[str]):
    write(source, {"a.md": "# A\n\nLater.\n"}, at_s=int(time.time()) + 3600)
    index_folder(source)
    opened.clear()
    index_folder(source)
    assert "a.md" in opened


def test_another_version_of_a_reader_reads_its_files_again(
    source: Path, parsed: list[str], monkeypatch: pytest.MonkeyPatch
):
    index_folder(source)
    parsed.clear()
    monkeypatch.setattr(
        indexing, "reader_name", lambda suffix: "md/2" if suffix == ".md" else readers.reader_name(suffix)
    )
    report = index_folder(source)
    assert parsed == ["a.md"]
    assert report.changed == ("a.md",)


_NAMES = ("a.md", "b.txt", "sub/c.html", "sub/d.rst", "e.pdf")
_CONTENTS = ("", "One.", "# Two\n\nSee [b](b.txt).", "Three\n=====\n\nText.", "<p>Four</p>", b"\0junk")


@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(_CONTENTS)), min_size=2, max_size=4))
def test_the_result_is_that_of_a_fresh_index_of_the_same_files(histories: list[dict[str, str | bytes]]):
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "papers"
        for files in histories:
            write(source, {"always.txt": "Always here.", **files})
            for path in list(source.rglob("*.*")):
                if path.is_file() and path.relative_to(source).as_posix() not in {"always.txt", *files}:
                    path.unlink()
            index_folder(source, Path(name) / "kept")
        index_folder(source, Path(name) / "fresh")
        assert contents(Path(name) / "kept") == contents(Path(name) / "fresh")
        assert open_library(Path(name) / "kept") == open_library(Path(name) / "fresh")


def test_a_broken_file_is_named_with_its_remedy_and_the_others_are_indexed(source: Path, parsed: list[str]):
    write(source, {"broken.pdf": b"%PDF-1.7 cut", "empty.txt": " \n", "junk.md": b"\0\1\2"})
    report = index_folder(source)
    assert report.documents == 3
    messages = [str(problem) for problem in report.problems]
    assert messages[0].startswith("broken.pdf is a broken PDF")
    assert messages[1:] == [
        "empty.txt holds no text: write something in it, or remove it",
        "junk.md is not text: save it as UTF-8 text, or move it out of the folder",
    ]
    assert all("\n" not in message for message in messages)
    parsed.clear()
    assert [str(problem) for problem in index_folder(source).problems] == messages
    assert parsed == []


def test_a_document_that_breaks_leaves_the_index(source: Path):
    index_folder(source)
    write(source, {"a.md": b"\0\1\2"})
    report = index_folder(source)
    assert report.removed == ("a.md",)
    assert open_library(source).topics == ("c.html", "sub/b.txt")


def test_a_file_above_the_limit_is_refused_by_name_and_not_opened(source: Path, opened: list[str]):
    write(source, {"big.txt": "x" * 2000})
    report = index_folder(source, max_file_bytes=1500)
    assert [str(problem) for problem in report.problems] == [
        "big.txt has 0.002 MB, and the limit is 0.0015 MB: split it, or raise the limit"
    ]
    assert "big.txt" not in opened


def test_hidden_files_other_kinds_and_links_to_folders_inside_are_left_out_silently(source: Path):
    write(source, {".hidden.md": "x", ".git/x.md": "x", "sub/.x/y.txt": "x", "data.csv": "1", "UPPER.TXT": "Upper."})
    (source / "again").symlink_to(source / "sub")
    report = index_folder(source)
    assert report.added == ("UPPER.TXT", "a.md", "c.html", "sub/b.txt")
    assert report.problems == ()


def test_links_that_leave_the_folder_or_lead_nowhere_are_not_followed_and_are_named(source: Path, tmp_path: Path):
    write(tmp_path, {"elsewhere/secret.md": "Secret."})
    (source / "out.md").symlink_to(tmp_path / "elsewhere/secret.md")
    (source / "outside").symlink_to(tmp_path / "elsewhere")
    (source / "broken.md").symlink_to(source / "nothing.md")
    (source / "loop.md").symlink_to(source / "loop.md")
    (source / "inside.txt").symlink_to(source / "sub/b.txt")
    report = index_folder(source)
    assert [problem.path for problem in report.problems] == ["broken.md", "loop.md", "out.md", "outside"]
    assert "out.md is a link that leaves the folder" in str(report.problems[2])
    assert "inside.txt" in report.added


def test_what_is_not_a_file_is_not_opened(source: Path):
    os.mkfifo(source / "pipe.txt")
    assert str(index_folder(source).problems[0]).startswith("pipe.txt is not a file")


def test_a_file_that_the_system_refuses_is_named(source: Path, monkeypatch: pytest.MonkeyPatch):
    read_bytes = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "a.md":
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    report = index_folder(source)
    assert [str(problem) for problem in report.problems] == [
        "a.md cannot be read (Permission denied): check that it is there and its permissions"
    ]
    assert report.added == ("c.html", "sub/b.txt")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_forbidden_folders_are_named_and_a_forbidden_index_changes_nothing(source: Path):
    (source / "sub").chmod(0)
    try:
        assert [problem.path for problem in index_folder(source, source.parent / "out").problems] == ["sub"]
    finally:
        (source / "sub").chmod(0o755)
    source.chmod(0o555)
    try:
        with pytest.raises(ConfigurationError, match=r"\.docmind cannot be written \(Permission denied\).*--out"):
            index_folder(source)
        assert not (source / ".docmind").exists()
    finally:
        source.chmod(0o755)


def test_an_index_folder_that_cannot_be_made_is_refused_by_name(source: Path):
    with pytest.raises(ConfigurationError, match=r"index folder .*b\.txt/index cannot be written .*; choose .* --out$"):
        index_folder(source, source / "sub/b.txt/index")


def test_a_full_disk_is_one_line_and_leaves_the_old_index(source: Path, monkeypatch: pytest.MonkeyPatch):
    index_folder(source)
    before = contents(source / ".docmind")
    write(source, {"a.md": "# A\n\nOf motors.\n"})

    def fsync(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ConfigurationError, match=r"cannot be written \(No space left on device\)"):
        index_folder(source)
    assert contents(source / ".docmind") == before


def test_a_folder_with_other_things_in_it_is_not_made_an_index(source: Path, tmp_path: Path):
    write(tmp_path / "mine", {"thesis.md": "Precious."})
    with pytest.raises(ConfigurationError, match=r"holds other things, such as 'thesis\.md'; choose a new"):
        index_folder(source, tmp_path / "mine")
    with pytest.raises(ConfigurationError, match="is the folder of the documents"):
        index_folder(source, source)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "does not exist; check the path"),
        (lambda path: path.write_text("x"), "is a file; name the folder it is in"),
        (
            lambda path: path.mkdir(),
            r"holds no document; the kinds that are read are \.html, \.md, \.pdf, \.rst, \.txt",
        ),
    ],
    ids=["missing", "file", "empty"],
)
def test_a_folder_without_documents_is_refused_and_nothing_is_written(tmp_path: Path, make, message: str):
    make(tmp_path / "papers")
    with pytest.raises(ConfigurationError, match=message):
        index_folder(tmp_path / "papers", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_index_inside_the_folder_is_never_read_as_documents(source: Path):
    report = index_folder(source, source / "index")
    write(source, {"index/passages/x.txt": "Not a document."})
    assert index_folder(source, source / "index").unchanged == report.added


def test_git_is_told_to_leave_the_copies_of_the_text_alone(source: Path):
    index_folder(source)
    assert (source / ".docmind/.gitignore").read_text() == "*\n"


def test_progress_names_the_document_that_is_next_and_ends_full(source: Path):
    told: list[tuple[int, int, str]] = []
    index_folder(source, progress=lambda done, total, name: told.append((done, total, name)))
    assert told == [(0, 3, "a.md"), (1, 3, "c.html"), (2, 3, "sub/b.txt"), (3, 3, "")]


def test_a_second_process_is_refused_with_the_number_of_the_first(source: Path):
    index_folder(source)
    index = source / ".docmind"
    code = (
        "import sys; from pathlib import Path; from docmind_lab.docmind.documents.store import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(index)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigurationError, match=rf"is being written by process {holder.pid}; wait until it ends"):
            index_folder(source)
        assert open_library(source).topics == ("a.md", "c.html", "sub/b.txt")
        holder.kill()
        holder.wait()
    assert (index / "lock").read_text() == f"{holder.pid}\n"
    assert index_folder(source).documents == 3
    assert (index / "lock").read_text() == ""


def test_two_threads_do_not_share_the_lock_either(source: Path):
    index_folder(source)
    with locked(source / ".docmind"):
        with pytest.raises(ConfigurationError, match=f"process {os.getpid()}"):
            index_folder(source)


def test_an_index_of_another_version_is_not_touched(source: Path):
    index_folder(source)
    manifest = source / ".docmind/library.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    before = contents(source / ".docmind")
    write(source, {"a.md": "# A\n\nOf motors.\n"})
    with pytest.raises(RecordError, match="schema version 2, and this docmind_lab reads version 1; upgrade"):
        index_folder(source)
    assert contents(source / ".docmind") == before
