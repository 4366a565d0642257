"""The questions asked of a corpus, and how an answer to one is scored.

    question = load_questions()[0]
    source_recall(question, ["function", "calls"])                            # 1.0
    answer_score(question, "It is evaluated once, when … [function#4]", docs)  # share of the facts, each with proof
    read_questions("mine.json")                                                # a user's own, in the same shape

The questions are in docmind_lab/data/questions.json, those of the handbook in handbook_questions.json beside it. They
were written by reading the documents and were not tuned to what the search finds. Each gold fact is a short phrase
that a gold topic's text has, the reference's in every supported Python.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from docmind_lab.errors import ConfigurationError

# The reference marks code with quotes in some versions and with backticks or asterisks in others, and sets
# typographic quotes around words; an answer may do any of it.
_MARKUP = str.maketrans("", "", "\"'`*‘’“”«»")
_CITATION = re.compile(r"\[([^\[\]\n]+)\]")

# A sentence ends at . ! ? with the citations that follow it, unless a lower-case word comes next ("e.g. a list");
# also at a blank line and before a bullet. The possessive `*+` keeps a citation with the sentence it closes.
_SENTENCE_END = re.compile(
    r"[.!?][\"'”’)]*(?:[ \t]*\n?[ \t]*\[[^\[\]\n]+\])*+(?=\s+[^a-z\s]|\s*$)"
    r"|\n[ \t]*\n"
    r"|\n(?=[ \t]*(?:[-*•]|\d+[.)])\s)"
)


@dataclass(frozen=True)
class Question:
    """One question with what a good answer rests on.

    gold_topics: topics of the corpus that hold the answer. gold_facts: phrases that the answer should state.
    complex: it joins two parts, so that a planner has something to plan.
    """

    id: str
    text: str
    gold_topics: tuple[str, ...] = ()
    gold_facts: tuple[str, ...] = ()
    complex: bool = False


class CitableDocument(Protocol):
    """What a citation can point to: an id, as in `[with#1]`, and a text."""

    @property
    def id(self) -> str:
        """The name between the brackets."""

    @property
    def content(self) -> str:
        """The text that has to bear the citation out."""


_FILES = {"language_reference": "questions.json", "handbook": "handbook_questions.json"}
_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and bool(value.strip()),
    "text": lambda value: isinstance(value, str) and bool(value.strip()),
    "gold_topics": lambda value: _is_list_of_texts(value),
    "gold_facts": lambda value: _is_list_of_texts(value),
    "complex": lambda value: isinstance(value, bool),
}
_SHAPES = {"gold_topics": "a list of texts", "gold_facts": "a list of texts", "complex": "true or false"}


def load_questions(corpus: str = "language_reference") -> tuple[Question, ...]:
    """The questions that come with a corpus, in file order; the same object on every call.

    corpus: "language_reference" has forty, "handbook" twelve. Raises: ConfigurationError for another name.
    """
    if corpus not in _FILES:
        raise ConfigurationError(f"corpus must be one of {', '.join(_FILES)}, not {corpus!r}")
    return _shipped(_FILES[corpus])


@functools.cache
def _shipped(name: str) -> tuple[Question, ...]:
    file = importlib.resources.files("docmind_lab.data").joinpath(name)
    return _parsed(json.loads(file.read_text(encoding="utf-8")), name)


def read_questions(path: str | os.PathLike[str], *, topics: Iterable[str] | None = None) -> tuple[Question, ...]:
    """A user's own questions: a JSON list of objects with id and text, and what is known of gold_topics, gold_facts
    and complex.

    topics: those of the corpus that is asked, such as `Library.topics`; gold topics must be among them.
    Raises: ConfigurationError naming the file, the question and the remedy.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}); check the path of the questions"
        ) from error
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON ({error}); write a list of questions") from error
    questions = _parsed(content, str(path))
    if topics is not None:
        _require_topics(questions, set(topics), str(path))
    return questions


def _parsed(content: Any, name: str) -> tuple[Question, ...]:
    if not isinstance(content, list) or not content:
        raise ConfigurationError(f'{name} must hold a list of questions, such as [{{"id": "q1", "text": "Why?"}}]')
    questions = tuple(_question(row, f"{name}, question {number}") for number, row in enumerate(content, start=1))
    if twice := [id_ for id_, count in Counter(question.id for question in questions).items() if count > 1]:
        raise ConfigurationError(f"{name}: the id {twice[0]!r} stands twice; give each question its own")
    return questions


def _question(row: Any, name: str) -> Question:
    if not isinstance(row, dict):
        raise ConfigurationError(f"{name} must be an object with id and text, not {type(row).__name__}")
    if unknown := sorted(set(row) - set(_FIELDS)):
        raise ConfigurationError(f"{name}: unknown field {unknown[0]!r}; the fields are {', '.join(_FIELDS)}")
    for field, is_right in _FIELDS.items():
        required = field in ("id", "text")
        if (field in row or required) and not is_right(row.get(field)):
            raise ConfigurationError(f"{name}: {field} must be {_SHAPES.get(field, 'a text that is not empty')}")
    return Question(
        id=row["id"],
        text=row["text"],
        gold_topics=tuple(row.get("gold_topics", ())),
        gold_facts=tuple(row.get("gold_facts", ())),
        complex=row.get("complex", False),
    )


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)


def _require_topics(questions: Iterable[Question], topics: set[str], name: str) -> None:
    for question in questions:
        for topic in question.gold_topics:
            if topic not in topics:
                near = difflib.get_close_matches(topic, sorted(topics), n=1)
                hint = f"did you mean {near[0]!r}?" if near else "name a document by its path in the folder"
                raise ConfigurationError(
                    f"{name}: question {question.id!r} has the gold topic {topic!r}, which no document has; {hint}"
                )


def source_recall(question: Question, topics: Iterable[str]) -> float:
    """Share of the question's gold topics among `topics`, in [0, 1]; NaN for a question without gold topics.

    Given the topics of the sources that reached the caller it is `source_recall` of the runs table, given those of
    everything retrieved by the deadline it is `recall_at_deadline`.
    """
    if not question.gold_topics:
        return math.nan
    returned = set(topics)
    return sum(topic in returned for topic in question.gold_topics) / len(question.gold_topics)


def answer_score(question: Question, answer: str, documents: Iterable[CitableDocument]) -> float:
    """Share of the question's gold facts that the answer states with proof, in [0, 1]; NaN without gold facts.

    A fact counts when one sentence both states it and cites, as `[id]` or `[id, id]` in the sentence or right
    after it, a document that states it too. Right facts without a citation, or with one to a document that does
    not say so, count nothing.
    """
    if not question.gold_facts:
        return math.nan
    texts = {document.id: normalise(document.content) for document in documents}
    sentences = [_read_sentence(sentence, texts) for sentence in split_sentences(answer)]
    return sum(_is_supported(normalise(fact), sentences) for fact in question.gold_facts) / len(question.gold_facts)


def normalise(text: str) -> str:
    """The text in lower case without quotes, backticks and asterisks, each run of white space as one space."""
    return " ".join(text.translate(_MARKUP).casefold().split())


def contains_fact(text: str, fact: str) -> bool:
    """Whether a normalised text has the normalised fact as whole words."""
    return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None


def split_sentences(answer: str) -> tuple[str, ...]:
    """The answer's sentences, each with the citations that follow it; paragraphs and bullets end one too."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(answer):
        sentences.append(answer[start : end.end()])
        start = end.end()
    sentences.append(answer[start:])
    return tuple(sentence.strip() for sentence in sentences if sentence.strip())


def _read_sentence(sentence: str, texts: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """What a sentence states, normalised and without its citations, and the texts that it cites."""
    cited: list[str] = []

    def take(match: re.Match[str]) -> str:
        names = [name.strip() for name in re.split("[,;]", match[1])]
        known = [name for name in names if name in texts]
        cited.extend(texts[name] for name in known)
        # Other brackets belong to the text, such as the index in `a[i]`.
        return " " if known else match[0]

    return normalise(_CITATION.sub(take, sentence)), tuple(cited)


def _is_supported(fact: str, sentences: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    return any(
        contains_fact(stated, fact) and any(contains_fact(text, fact) for text in cited) for stated, cited in sentences
    )
