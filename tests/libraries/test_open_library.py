"""Opening a library: its chunks and references, and what is said when there is nothing to open."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from library_folders import write
from qdrant_client import QdrantClient

from docmind_lab.core.errors import RecordError
from docmind_lab.docmind.documents import index_folder, open_library
from docmind_lab.docmind.retrieval import SearchIndex, search

FILES = {
    "a.md": "# A\n\nOf pumps. See [b](sub/b.html), [again](sub/b.html#x), [gone](gone.md), [me](a.md), [c](c).\n",
    "c.txt": "Of valves.",
    "sub/b.html": '<h1>B</h1><p>Of pipes, <a href="../c.txt">valves</a> and <a href="https://example.org/">more</a>.</p>',
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write(tmp_path / "papers", FILES)
    index_folder(tmp_path / "papers")
    return tmp_path / "papers"


def test_chunks_are_named_by_document_and_ordinal(source: Path):
    library = open_library(source)
    assert [(chunk.id, chunk.topic, chunk.section) for chunk in library.chunks] == [
        ("a.md#1", "a.md", "A"),
        ("c.txt#1", "c.txt", "c"),
        ("sub/b.html#1", "sub/b.html", "B"),
    ]
    assert library.topics == ("a.md", "c.txt", "sub/b.html")
    assert library.complete


def test_references_are_links_to_documents_of_the_library(source: Path):
    assert open_library(source).references == {"a.md": ("sub/b.html", "c.txt"), "sub/b.html": ("c.txt",)}


def test_a_reference_appears_when_its_document_does_without_reading_the_linking_one_again(source: Path):
    write(source, {"gone.md": "Of dams."})
    assert index_folder(source).changed == ()
    assert open_library(source).references["a.md"] == ("sub/b.html", "gone.md", "c.txt")


def test_a_library_opens_by_its_documents_or_by_its_index(source: Path):
    assert open_library(source) == open_library(source / ".docmind") == open_library(str(source))


def test_the_fingerprint_follows_text_and_references(source: Path):
    before = open_library(source).fingerprint
    write(source, {"c.txt": "Of levers."})
    index_folder(source)
    changed = open_library(source)
    assert changed.fingerprint != before
    write(source, {"c.txt": FILES["c.txt"]})
    index_folder(source)
    assert open_library(source).fingerprint == before


def test_a_library_is_searched_as_the_reference_is(source: Path):
    library, client = open_library(source), QdrantClient(":memory:")
    index = SearchIndex.build(client, library.chunks, collection="papers")
    assert search(client, index, "hybrid", "Which valves?")[0].topic == "c.txt"
    client.close()


def test_a_folder_without_an_index_is_refused_with_the_command_that_makes_one(tmp_path: Path):
    with pytest.raises(RecordError, match=r"papers holds no index; make one with `docmind-lab index .*papers`$"):
        open_library(tmp_path / "papers")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"schema_version": 2}',
            "has schema version 2, and this docmind_lab reads version 1; upgrade docmind_lab, or",
        ),
        ("{", r"library\.json cannot be read \(JSONDecodeError\); remove .*\.docmind and index the documents again"),
        ("[]", r"library\.json cannot be read \(TypeError\)"),
        ('{"schema_version": 1, "complete": true, "documents": {"a.md": {"size": 1}}}', "cannot be read"),
        ('{"schema_version": 1, "complete": true, "documents": []}', "cannot be read"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused_with_the_remedy(source: Path, content: str, message: str):
    (source / ".docmind/library.json").write_text(content)
    with pytest.raises(RecordError, match=message):
        open_library(source)


def test_a_damaged_passage_file_is_refused_by_name(source: Path):
    path = next((source / ".docmind/passages").iterdir())
    path.write_text(path.read_text().splitlines()[0])
    with pytest.raises(RecordError, match=rf"{path.name} is damaged \(ValueError\); remove it and index"):
        open_library(source)


def test_a_library_does_not_change_under_those_who_hold_it(source: Path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        open_library(source).complete = False
