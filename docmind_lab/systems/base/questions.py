"""The questions asked about a corpus, and how answers are scored.

    question = load_questions()[0]
    source_recall(question, ["deadline.md", "budget.md"])                      # 1.0
    answer_score(question, "A duration would have … [deadline.md#2]", docs)    # share of the facts, each with proof

The handbook's questions are in docmind_lab/core/data/handbook_questions.json. They were written by reading it and were
not tuned to what the search finds. Each gold fact is a short phrase that a gold topic's text has. A user's own have
the same shape (documents/own_questions.py).
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.corpus import HANDBOOK

# Documents and answers mark words with backticks, asterisks, or quotes of either kind.
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


class CitableDocument(Protocol):
    """A document that a citation such as `[with#1]` can name: an id and a text."""

    @property
    def id(self) -> str:
        """Id of the document, as written between the brackets."""

    @property
    def content(self) -> str:
        """Text of the document, which must state what the citation is for."""


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
    file = importlib.resources.files("docmind_lab.core.data").joinpath("handbook_questions.json")
    rows = enumerate(json.loads(file.read_text(encoding="utf-8")), 1)
    return tuple(question for _, question in parse_questions((f"{file.name}, question {at}", row) for at, row in rows))


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


def source_recall(question: Question, topics: Iterable[str]) -> float:
    """Return the share of the gold topics among `topics`, in [0, 1]; NaN for a question without gold topics.

    Given the topics of the sources that reached the caller it is `source_recall` of the runs table, given those of
    everything retrieved by the deadline it is `recall_at_deadline`.
    """
    if not question.gold_topics:
        return math.nan
    returned = set(topics)
    return sum(topic in returned for topic in question.gold_topics) / len(question.gold_topics)


def answer_score(question: Question, answer: str, documents: Iterable[CitableDocument]) -> float:
    """Return the share of gold facts that `answer` states with proof, in [0, 1]; NaN without gold facts.

    A fact counts when one sentence both states it and cites, as `[id]` or `[id, id]` in the sentence or right
    after it, one of `documents` that states it too. Right facts without a citation, or with one to a document that does
    not say so, count nothing.
    """
    if not question.gold_facts:
        return math.nan
    texts = {document.id: normalise(document.content) for document in documents}
    sentences = [_read_sentence(sentence, texts) for sentence in split_sentences(answer)]
    return sum(_is_supported(normalise(fact), sentences) for fact in question.gold_facts) / len(question.gold_facts)


def normalise(text: str) -> str:
    """Return the text in lower case without quotes, backticks and asterisks, with white space folded."""
    return " ".join(text.translate(_MARKUP).casefold().split())


def contains_fact(text: str, fact: str) -> bool:
    """Return whether a normalised text contains the normalised fact as whole words."""
    return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text) is not None


def split_sentences(answer: str) -> tuple[str, ...]:
    """Split an answer into sentences, each with the citations after it; paragraphs and bullets end one too."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(answer):
        sentences.append(answer[start : end.end()])
        start = end.end()
    sentences.append(answer[start:])
    return tuple(sentence.strip() for sentence in sentences if sentence.strip())


def _read_sentence(sentence: str, texts: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return what a sentence states, normalised and without citations, and the texts that it cites."""
    cited: list[str] = []

    def take(match: re.Match[str]) -> str:
        names = [name.strip() for name in re.split("[,;]", match[1])]
        citable = [name for name in names if name in texts]
        cited.extend(texts[name] for name in citable)
        # Other brackets belong to the text, such as the index in `a[i]`.
        return " " if citable else match[0]

    return normalise(_CITATION.sub(take, sentence)), tuple(cited)


def _is_supported(fact: str, sentences: Sequence[tuple[str, tuple[str, ...]]]) -> bool:
    return any(
        contains_fact(stated, fact) and any(contains_fact(text, fact) for text in cited) for stated, cited in sentences
    )
