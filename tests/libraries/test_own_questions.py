"""A user's own questions: what is read, and what is refused with the name of the question and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.errors import ConfigurationError
from docmind_lab.retrieval.questions import Question, load_questions, read_questions


def file_with(folder: Path, content: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_only_the_id_and_the_text_are_required(tmp_path: Path):
    rows = [
        {"id": "1", "text": "Why?"},
        {"id": "2", "text": "How?", "gold_topics": ["a.md"], "gold_facts": ["so it is"], "complex": True},
    ]
    assert read_questions(file_with(tmp_path, rows), topics=["a.md"]) == (
        Question("1", "Why?"),
        Question("2", "How?", ("a.md",), ("so it is",), complex=True),
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"mine\.json is not JSON \(.*\); write a list"),
        ({}, "must hold a list of questions, such as"),
        ([], "must hold a list of questions, such as"),
        (["Why?"], "question 1 must be an object with id and text, not str"),
        ([{"id": "1", "text": " "}], "question 1: text must be a text that is not empty"),
        ([{"id": "1", "text": "Why?"}, {"text": "How?"}], "question 2: id must be a text that is not empty"),
        ([{"id": "1", "text": "Why?", "gold_topics": "a.md"}], "question 1: gold_topics must be a list of texts"),
        ([{"id": "1", "text": "Why?", "gold_facts": [1]}], "question 1: gold_facts must be a list of texts"),
        ([{"id": "1", "text": "Why?", "complex": 1}], "question 1: complex must be true or false"),
        ([{"id": "1", "text": "Why?", "gold": []}], "question 1: unknown field 'gold'; the fields are id, text"),
        ([{"id": "1", "text": "Why?"}] * 2, "the id '1' stands twice"),
        (
            [{"id": "1", "text": "Why?", "gold_topics": ["guide/a.txt"]}],
            r"question '1' has the gold topic 'guide/a\.txt', which no document has; did you mean 'guide/a\.md'\?",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name_and_place(tmp_path: Path, content: Any, message: str):
    with pytest.raises(ConfigurationError, match=message) as refused:
        read_questions(file_with(tmp_path, content), topics=["guide/a.md"])
    assert "mine.json" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_an_unknown_corpus_are_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read \(No such file or directory\)"):
        read_questions(tmp_path / "none.json")
    with pytest.raises(ConfigurationError, match="corpus must be one of language_reference, handbook, not 'x'"):
        load_questions("x")
