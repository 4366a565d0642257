"""Read a user's questions from a file: one in each row, with the documents that a good answer rests on.

    {"text": "Who closes the sluice?", "gold_documents": ["harbour/rules.md"], "gold_facts": ["the warden"]}

`text` is required. A .jsonl file has an object in each line. A .csv file has the fields as columns, and several items
in one cell are separated by ";". A .json file is a list of the objects.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.documents.folder import topic_of
from docmind_lab.systems.base.questions import Question, parse_questions

Row = tuple[str, Any]
"""The place of a question in its file, as an error names it, and what stands there."""

_BETWEEN_ITEMS = ";"
_TRUTHS = {"true": True, "false": False}


def read_questions(path: str | os.PathLike[str], *, topics: Iterable[str] | None = None) -> tuple[Question, ...]:
    """Read the questions of a file, in order; a question without an id gets its number.

    topics: of the documents that are asked, such as `Library.topics`. A gold document is named by its path in the
    folder, as a file or as a topic, and must be among them; None leaves them as they are written.
    Raises: ConfigurationError naming the file, the line and the field, with the remedy.
    """
    read = _READERS.get(Path(path).suffix.lower())
    if read is None:
        kinds = ", ".join(_READERS)
        raise ConfigurationError(f"questions {path}: the kinds that are read are {kinds}; write it as one of them")
    questions = list(parse_questions(read(str(path), _text(path))))
    if not questions:
        raise ConfigurationError(f'{path} holds no question; write one at least, such as {{"text": "Why?"}}')
    if topics is None:
        return tuple(question for _, question in questions)
    topic_names = frozenset(topics)
    return tuple(_with_topics(topic_names, place, question) for place, question in questions)


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}); check the path of the questions"
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _json_lines(name: str, text: str) -> Iterator[Row]:
    # Not splitlines: a text may hold a line separator of Unicode's.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{name}, line {number}"
            try:
                yield place, json.loads(line)
            except ValueError as error:
                raise ConfigurationError(f"{place} is not JSON ({error}); write one object in each line") from error


def _json_list(name: str, text: str) -> Iterator[Row]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{name} is not JSON ({error}); write a list of questions") from error
    if not isinstance(content, list):
        raise ConfigurationError(f'{name} must hold a list of questions, such as [{{"text": "Why?"}}]')
    yield from ((f"{name}, question {number}", row) for number, row in enumerate(content, start=1))


def _csv_rows(name: str, text: str) -> Iterator[Row]:
    # Not splitlines, as above; with its own newlines, a text in quotes keeps them.
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    begins = 1
    try:
        for cells in lines:
            place, begins = f"{name}, line {begins}", lines.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = _columns(cells, place)
            elif len(cells) > len(columns):
                raise ConfigurationError(
                    f"{place} has {len(cells)} cells for {len(columns)} columns; put quotes around a text with a comma"
                )
            else:
                yield place, _fields(dict(zip(columns, cells, strict=False)), place)
    except csv.Error as error:
        raise ConfigurationError(f"{name}, line {begins} is not CSV ({error}); close the quotes") from error


def _columns(cells: list[str], place: str) -> list[str]:
    columns = [cell.strip() for cell in cells]
    if "text" not in columns:
        raise ConfigurationError(
            f"{place}: no column is called text; the first line names the columns, with commas between them, such as "
            "text,gold_documents"
        )
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        raise ConfigurationError(f"{place}: two columns are called {twice!r}; leave one out")
    return columns


def _fields(cells: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the fields in the cells of a row; empty cells are left out."""
    row: dict[str, Any] = {name: cell.strip() for name, cell in cells.items() if cell.strip()}
    for name in row.keys() & {"gold_documents", "gold_topics", "gold_facts"}:
        row[name] = [item.strip() for item in row[name].split(_BETWEEN_ITEMS) if item.strip()]
    if "complex" in row:
        row["complex"] = _TRUTHS.get(row["complex"].lower(), row["complex"])
    return row


_READERS: Mapping[str, Callable[[str, str], Iterator[Row]]] = MappingProxyType(
    {".jsonl": _json_lines, ".csv": _csv_rows, ".json": _json_list}
)


def _with_topics(names: Collection[str], place: str, question: Question) -> Question:
    """Replace gold documents by their topics. Raises: ConfigurationError for one that is not among the documents."""
    topics: dict[str, None] = {}
    for name in question.gold_topics:
        topic = name if name in names else topic_of(os.path.normpath(name))
        if topic not in names:
            raise ConfigurationError(
                f"{place}: the gold document {name!r} is not among the documents; {_suggestion(topic, names)}"
            )
        topics[topic] = None
    return replace(question, gold_topics=tuple(topics))


def _suggestion(topic: str, names: Collection[str]) -> str:
    ends = sorted(name for name in names if PurePosixPath(name).name == PurePosixPath(topic).name)
    near = ends or difflib.get_close_matches(topic, sorted(names), n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "name it by its path in the folder, and index the folder again if the document is new"
