"""Read a user's questions from a file: one in each line, with the documents that a good answer rests on.

    {"text": "Who closes the sluice?", "gold_documents": ["harbour/rules.md"], "gold_facts": ["the warden"]}

`text` is required.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.documents.folder import topic_of
from docmind_lab.systems.base.questions import Question, json_lines, parse_questions


def read_questions(path: str | os.PathLike[str], *, topics: Iterable[str] | None = None) -> tuple[Question, ...]:
    """Read the questions of a file, in order; a question without an id gets its number.

    topics: of the documents that are asked, such as `Library.topics`. A gold document is named by its path in the
    folder, as a file or as a topic, and must be among them; None leaves them as they are written.
    Raises: ConfigurationError naming the file, the line and the field, with the remedy.
    """
    if Path(path).suffix.lower() != ".jsonl":
        raise ConfigurationError(
            f"questions {path}: a .jsonl file is read, one JSON object in each line; pandas makes one of a table: "
            'frame.to_json("questions.jsonl", orient="records", lines=True)'
        )
    lines = ((f"{path}, line {number}", row) for number, row in json_lines(path, str(path)))
    questions = list(parse_questions(lines))
    if not questions:
        raise ConfigurationError(f'{path} holds no question; write one at least, such as {{"text": "Why?"}}')
    if topics is None:
        return tuple(question for _, question in questions)
    topic_names = frozenset(topics)
    return tuple(_with_topics(topic_names, place, question) for place, question in questions)


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
