"""A user's own questions: what is read, and what is refused with the name of the line and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.documents import read_questions
from docmind_lab.systems.base.questions import Question, load_questions


def file_with(folder: Path, content: Any, name: str = "mine.jsonl") -> Path:
    """A file of this text, or with these objects in its lines."""
    path = folder / name
    text = content if isinstance(content, str) else "".join(f"{json.dumps(row)}\n" for row in content)
    path.write_bytes(text.encode())
    return path


def test_only_the_text_is_required(tmp_path: Path):
    rows = [
        {"text": "Why?"},
        {"id": "2", "text": "How?", "gold_topics": ["a.md"], "gold_facts": ["so it is"], "complex": True},
    ]
    assert read_questions(file_with(tmp_path, rows), topics=["a.md"]) == (
        Question("001", "Why?"),
        Question("2", "How?", ("a.md",), ("so it is",), complex=True),
    )


LINES = """\ufeff{"text": "Who,\u2028then?", "gold_documents": ["./rules.md", "my notes/a.md", "rules.md"]}

{"text": "Why?"}
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_end_as_every_system_ends_them_and_documents_are_named_by_their_paths(tmp_path: Path, line_end: str):
    path = file_with(tmp_path, LINES.replace("\n", line_end), "mine.JSONL")
    expected = Question("001", "Who,\u2028then?", ("rules.md", "my%20notes/a.md"))
    assert read_questions(path, topics=("rules.md", "my%20notes/a.md")) == (expected, Question("002", "Why?"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no question; write one at least, such as"),
        ('{"text": "Why?"}\n\n{oops\n', r"line 3 is not JSON \(.*\); write one object"),
        (["Why?"], "line 1: a question is an object with a text, not a str"),
        ([{"id": "1", "text": " "}], "line 1: text must be a text that is not empty"),
        ([{"text": "Why?"}, {"id": "2"}], "line 2: text is missing; write the question there"),
        ([{"id": 1, "text": "Why?"}], "line 1: id must be a text that is not empty"),
        ([{"text": "Why?", "gold_topics": "a.md"}], "line 1: gold_topics must be a list of texts"),
        ([{"text": "Why?", "gold_documents": "a.md"}], "line 1: gold_documents must be a list of texts"),
        ([{"text": "Why?", "gold_facts": [1]}], "line 1: gold_facts must be a list of texts"),
        ([{"text": "Why?", "complex": 1}], "line 1: complex must be true or false"),
        ([{"text": "Why?", "gold": []}], "line 1: unknown field 'gold'; the fields are text, gold_documents"),
        ([{"text": "Why?", "gold_documents": [], "gold_topics": []}], "are two names of one field; leave one out"),
        ([{"id": "1", "text": "Why?"}] * 2, r"line 2: the id '1' is that of .*mine\.jsonl, line 1 too"),
        ([{"text": "Why?"}, {"id": "001", "text": "Why?"}], "line 2: the id '001' is that of"),
        (
            [{"id": "1", "text": "Why?", "gold_documents": ["guide/a.txt"]}],
            r"line 1: the gold document 'guide/a\.txt' is not among the documents; did you mean 'guide/a\.md'\?",
        ),
        ([{"text": "Why?", "gold_documents": ["papers/guide/a.md"]}], r"did you mean 'guide/a\.md'\?"),
        (
            [{"text": "Why?", "gold_documents": ["zzz"]}],
            "name it by its path in the folder, and index the folder again",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name_and_place(tmp_path: Path, content: Any, message: str):
    with pytest.raises(ConfigurationError, match=message) as refused:
        read_questions(file_with(tmp_path, content), topics=["guide/a.md"])
    assert "mine.jsonl" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_another_kind_what_is_no_text_and_a_missing_file_are_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"q\.csv: a \.jsonl file is read, .*; pandas makes one of a table"):
        read_questions(file_with(tmp_path, "text\nWhy?\n", "q.csv"))
    (tmp_path / "latin.jsonl").write_bytes('{"text": "hängt"}\n'.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"latin\.jsonl is not UTF-8 text \(byte 11\); save it as UTF-8"):
        read_questions(tmp_path / "latin.jsonl")
    with pytest.raises(ConfigurationError, match=r"none\.jsonl cannot be read \(No such file or directory\)"):
        read_questions(tmp_path / "none.jsonl")


def test_an_unknown_corpus_has_no_questions():
    with pytest.raises(ConfigurationError, match="documents must be handbook, not 'x'"):
        load_questions("x")
