"""How an answer is scored, whole or partial: by the sources it had, and by the facts that it states with proof.

source_recall(question, ["deadline.md", "budget.md"])                      # 1.0
answer_score(question, "A duration would have … [deadline.md#2]", docs)    # share of the facts, each with proof
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from docmind_lab.alternatives.base import Outcome
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.base.results import RetrievedDocument

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
_DOCUMENT_FIELDS = ("id", "content", "metadata", "score")


def scores_of(question: Question, outcome: Outcome) -> tuple[float, float]:
    """Return source recall and answer score of what a caller was given, in time, late or in part."""
    payloads = [{name: payload[name] for name in _DOCUMENT_FIELDS if name in payload} for payload in outcome.documents]
    documents = [RetrievedDocument(**payload) for payload in payloads]
    recall = source_recall(question, [document.topic for document in documents])
    return recall, answer_score(question, outcome.answer, documents)


def source_recall(question: Question, topics: Iterable[str]) -> float:
    """Return the share of the gold topics among `topics`, in [0, 1]; NaN for a question without gold topics.

    Given the topics of the sources that reached the caller it is `source_recall` of the runs table, given those of
    everything retrieved by the deadline it is `recall_at_deadline`.
    """
    if not question.gold_topics:
        return math.nan
    returned = set(topics)
    return sum(topic in returned for topic in question.gold_topics) / len(question.gold_topics)


def answer_score(question: Question, answer: str, documents: Iterable[RetrievedDocument]) -> float:
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
