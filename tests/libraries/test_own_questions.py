"""A user's own questions: what is read, and what is refused with the name of the line and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.documents import read_questions
from docmind_lab.systems.base.questions import Question, load_questions


def file_with(folder: Path, content: Any, name: str = "mine.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
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


EXPECTED = (
    Question("sluice", "Who, then?", ("rules.md", "my%20notes/a.md"), ("the warden", "by hand"), complex=True),
    Question("002", "Why?"),
)
TOPICS = ("rules.md", "my%20notes/a.md", "guide/b.md")


LINES = """\ufeff{"id": "sluice", "text": "Who, then?", "complex": true, "gold_facts": ["the warden", "by hand"], \
"gold_documents": ["rules.md", "my notes/a.md"]}

{"text": "Why?"}
"""
CELLS = """\ufeffid,text,gold_documents,gold_facts,complex
sluice,"Who, then?",./rules.md; my notes/a.md ;rules.md,the warden;by hand,TRUE
,,,,
,Why?,,
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("name", "content"), [("mine.jsonl", LINES), ("mine.CSV", CELLS)])
def test_lines_of_json_and_of_csv_say_the_same(tmp_path: Path, name: str, content: str, line_end: str):
    (tmp_path / name).write_bytes(content.replace("\n", line_end).encode())
    assert read_questions(tmp_path / name, topics=TOPICS) == EXPECTED


def test_a_text_may_have_line_ends_of_its_own(tmp_path: Path):
    lines = file_with(tmp_path, '{"text": "Why\u2028so?"}\n', "mine.jsonl")
    cells = file_with(tmp_path, 'text\n"Why\nso?"\n', "mine.csv")
    assert [read_questions(path)[0].text for path in (lines, cells)] == ["Why\u2028so?", "Why\nso?"]
    plain = file_with(tmp_path, "text,gold_facts\r\nWhy\u2028so?,one\x0btwo\r\nAnd?,\r\n", "plain.csv")
    assert [(each.text, each.gold_facts) for each in read_questions(plain)] == [
        ("Why\u2028so?", ("one\x0btwo",)),
        ("And?", ()),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"mine\.json is not JSON \(.*\); write a list"),
        ({}, "must hold a list of questions, such as"),
        ([], "holds no question; write one at least, such as"),
        (["Why?"], "question 1: a question is an object with a text, not a str"),
        ([{"id": "1", "text": " "}], "question 1: text must be a text that is not empty"),
        ([{"text": "Why?"}, {"id": "2"}], "question 2: text is missing; write the question there"),
        ([{"id": 1, "text": "Why?"}], "question 1: id must be a text that is not empty"),
        ([{"text": "Why?", "gold_topics": "a.md"}], "question 1: gold_topics must be a list of texts"),
        ([{"text": "Why?", "gold_documents": "a.md"}], "question 1: gold_documents must be a list of texts"),
        ([{"text": "Why?", "gold_facts": [1]}], "question 1: gold_facts must be a list of texts"),
        ([{"text": "Why?", "complex": 1}], "question 1: complex must be true or false"),
        ([{"text": "Why?", "gold": []}], "question 1: unknown field 'gold'; the fields are text, gold_documents"),
        ([{"text": "Why?", "gold_documents": [], "gold_topics": []}], "are two names of one field; leave one out"),
        ([{"id": "1", "text": "Why?"}] * 2, r"question 2: the id '1' is that of .*mine\.json, question 1 too"),
        ([{"text": "Why?"}, {"id": "001", "text": "Why?"}], "question 2: the id '001' is that of"),
        (
            [{"id": "1", "text": "Why?", "gold_documents": ["guide/a.txt"]}],
            r"question 1: the gold document 'guide/a\.txt' is not among the documents; did you mean 'guide/a\.md'\?",
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
    assert "mine.json" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", "", r"q\.jsonl holds no question"),
        (
            "q.jsonl",
            '{"text": "Why?"}\n\n{oops\n',
            r"q\.jsonl, line 3 is not JSON \(.*\); write one object",
        ),
        ("q.jsonl", '\n{"gold_documents": []}\n', r"q\.jsonl, line 2: text is missing"),
        ("q.jsonl", '"Why?"\n', r"q\.jsonl, line 1: a question is an object with a text, not a str"),
        ("q.csv", "", r"q\.csv holds no question"),
        ("q.csv", "text;gold_documents\nWhy?;a.md\n", r"q\.csv, line 1: no column is called text; .* commas between"),
        ("q.csv", "text,text\nWhy?,How?\n", r"q\.csv, line 1: two columns are called 'text'"),
        ("q.csv", 'text,id\n"Why\nso?",1\nWhy, how?,2\n', r"q\.csv, line 4 has 3 cells for 2 columns; put quotes"),
        ("q.csv", 'text,id\n"Why\nso?",1,2\n', r"q\.csv, line 2 has 3 cells for 2 columns"),
        ("q.csv", "id,text\n1,Why?\n2\n", r"q\.csv, line 3: text is missing"),
        ("q.csv", "text,complex\nWhy?,perhaps\n", r"q\.csv, line 2: complex must be true or false"),
        ("q.csv", "text,gold\nWhy?,a.md\n", r"q\.csv, line 2: unknown field 'gold'"),
        ("q.csv", 'text\nHow?\n"Why?\n', r"q\.csv, line 3 is not CSV \(.*\); close the quotes"),
        ("q.csv", "text,gold_documents\nWhy?,b.md\n", r"q\.csv, line 2: the gold document 'b\.md' is not among"),
        ("q.txt", "Why?", r"q\.txt: the kinds that are read are \.jsonl, \.csv, \.json; write it as one of them"),
    ],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, name: str, content: str, message: str):
    with pytest.raises(ConfigurationError, match=message) as refused:
        read_questions(file_with(tmp_path, content, name), topics=["guide/a.md"])
    assert "\n" not in str(refused.value)


def test_what_is_no_text_and_a_missing_file_are_refused(tmp_path: Path):
    (tmp_path / "latin.csv").write_bytes("text\nWarum hängt es?\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"latin\.csv is not UTF-8 text \(byte 12\); save it as UTF-8"):
        read_questions(tmp_path / "latin.csv")
    with pytest.raises(ConfigurationError, match=r"none\.json cannot be read \(No such file or directory\)"):
        read_questions(tmp_path / "none.json")


def test_an_unknown_corpus_has_no_questions():
    with pytest.raises(ConfigurationError, match="documents must be handbook, not 'x'"):
        load_questions("x")
