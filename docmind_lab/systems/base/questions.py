"""The questions asked about a corpus.

The handbook's are in docmind_lab/core/data/handbook_questions.json. They were written by reading it and were not tuned
to what the search finds. Each gold fact is a short phrase that a gold topic's text has. A user's own have the same
shape (documents/own_questions.py). How answers are scored is in answer_scores.py.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmind_lab.core.data import data_in
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import HANDBOOK


@dataclass(frozen=True)
class Question:
    """A question, with the topics and facts that a good answer rests on.

    id: of the question, different from all others asked. text: the question. gold_topics: topics of the corpus that
    hold the answer. gold_facts: phrases that the answer should state. complex: it joins two parts, so that a planner
    has something to plan.
    """

    id: str
    text: str
    gold_topics: tuple[str, ...] = ()
    gold_facts: tuple[str, ...] = ()
    complex: bool = False


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str) and bool(value.strip()),
    "gold_documents": lambda value: _is_list_of_texts(value),
    "gold_topics": lambda value: _is_list_of_texts(value),
    "gold_facts": lambda value: _is_list_of_texts(value),
    "complex": lambda value: isinstance(value, bool),
    "id": lambda value: isinstance(value, str) and bool(value.strip()),
}
_LISTS = dict.fromkeys(("gold_documents", "gold_topics", "gold_facts"), "a list of texts")
_SHAPES = {**_LISTS, "complex": "true or false"}


def require_handbook(corpus: str) -> None:
    """Return if the name of a corpus is that of the handbook. Raises: ConfigurationError for every other name."""
    if corpus == HANDBOOK:
        return
    if corpus == "language_reference":
        raise ConfigurationError(
            "documents: language_reference has left the lab, since its text was another in every Python; leave "
            "documents out for the handbook, or name a folder of .md and .txt files"
        )
    raise ConfigurationError(
        f"documents must be {HANDBOOK}, not {corpus!r}; or a folder of .md and .txt files (--documents): check the path"
    )


def load_questions(corpus: str = HANDBOOK) -> tuple[Question, ...]:
    """Load the handbook's twelve questions, the same object on every call. Raises: as `require_handbook`."""
    require_handbook(corpus)
    return _load_handbook()


@functools.cache
def _load_handbook() -> tuple[Question, ...]:
    file = "handbook_questions.json"
    rows = ((f"{file}, question {at}", row) for at, row in enumerate(data_in(file), 1))
    return tuple(question for _, question in parse_questions(rows))


def json_lines(path: str | os.PathLike[str], named: str) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line of a file that is not empty, from 1, and the JSON that stands in it.

    named: how errors call the file. Raises: ConfigurationError naming the file, the line and the remedy.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{named} cannot be read ({error.strerror}); check its path") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{named} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    # Not splitlines: a text may hold a line separator of Unicode's.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise ConfigurationError(
                    f"{named}, line {number} is not JSON ({error}); write one object in each line"
                ) from error


def parse_questions(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Question]]:
    """Parse (place, object) pairs to (place, question), in order. place: names the object in errors.

    An object has `text`, and what is known of gold_documents (or gold_topics, the same by another name), gold_facts,
    complex and id. One without an id is called by its number: "001".
    Raises: ConfigurationError naming the place, the field and the remedy.
    """
    places: dict[str, str] = {}
    for number, (place, row) in enumerate(rows, start=1):
        question = _question(row, place, f"{number:03}")
        if question.id in places:
            raise ConfigurationError(
                f"{place}: the id {question.id!r} is that of {places[question.id]} too; give each question its own"
            )
        places[question.id] = place
        yield place, question


def _question(row: Any, place: str, unsaid_id: str) -> Question:
    if not isinstance(row, dict):
        raise ConfigurationError(f"{place}: a question is an object with a text, not a {type(row).__name__}")
    if unknown := sorted(set(row) - set(_FIELDS)):
        raise ConfigurationError(f"{place}: unknown field {unknown[0]!r}; the fields are {', '.join(_FIELDS)}")
    if "text" not in row:
        raise ConfigurationError(f"{place}: text is missing; write the question there")
    for field in row:
        if not _FIELDS[field](row[field]):
            raise ConfigurationError(f"{place}: {field} must be {_SHAPES.get(field, 'a text that is not empty')}")
    if "gold_documents" in row and "gold_topics" in row:
        raise ConfigurationError(f"{place}: gold_documents and gold_topics are two names of one field; leave one out")
    return Question(
        id=row.get("id", unsaid_id),
        text=row["text"],
        gold_topics=tuple(row.get("gold_documents") or row.get("gold_topics", ())),
        gold_facts=tuple(row.get("gold_facts", ())),
        complex=row.get("complex", False),
    )


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)
