"""Build answers from sentences of the documents, with citations, and check such answers.

A sentence is chosen by the words it shares with the question, rare words counting more (inverse document frequency
over the sentences at hand), and by how many of the question's words no sentence before it has covered.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from docmind_lab.services.scripted_model.conversation import Document

_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|\d+")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[\"“‘(A-Z*])|\n\s*\n")
_CITATION = re.compile(r"\[([^\[\]\s]+)\]")
# fmt: off
_STOP_WORDS = frozenset(
    {
        "a", "about", "an", "and", "any", "are", "as", "at", "be", "been", "between", "but", "by", "can",
        "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have", "having", "how", "i",
        "if", "in", "into", "is", "it", "its", "may", "me", "might", "must", "my", "no", "not", "of", "on",
        "or", "our", "out", "over", "should", "so", "some", "such", "than", "that", "the", "their", "them",
        "then", "there", "these", "they", "this", "those", "to", "under", "up", "use", "used", "using", "was",
        "we", "were", "what", "when", "where", "which", "while", "who", "why", "will", "with", "would", "you",
        "your",
    }
)
# fmt: on

NOT_FOUND = "The documents found do not answer this question."
MAX_SENTENCES = 4
MAX_SENTENCE_CHARACTERS = 500
# An answer needs two of the question's words, or the only one it has: one shared word is found by accident.
MIN_SHARED_WORDS = 2


@lru_cache(maxsize=2**15)  # Stemming is most of the cost of an index, and words repeat.
def stem(word: str) -> str:
    """Return the stem of an English word."""
    # A stemmer keeps the word it works on in itself: one that is shared would let two threads corrupt each other's.
    return str(snowballstemmer.stemmer("english").stemWord(word))


def content_words(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in order."""
    return [stem(word) for word in (w.lower() for w in _WORD.findall(text)) if word not in _STOP_WORDS]


def sentences(text: str) -> list[str]:
    """Split a text into sentences with white space folded; leave out those that are too short or too long."""
    folded = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return [part for part in folded if 20 <= len(part) <= MAX_SENTENCE_CHARACTERS]


@dataclass(frozen=True)
class _Candidate:
    text: str
    document_id: str
    words: frozenset[str]
    order: int


def extract_answer(question: str, documents: list[Document]) -> str:
    """Return up to four sentences that answer, each with its document's id ("Sentence. [id]"), or `NOT_FOUND`."""
    query = set(content_words(question))
    candidates = [
        _Candidate(text, document.id, frozenset(content_words(text)), order)
        for order, (document, text) in enumerate((d, s) for d in documents for s in sentences(d.content))
    ]
    frequency = Counter(word for candidate in candidates for word in candidate.words)
    weight = {word: math.log(1 + len(candidates) / (1 + frequency[word])) for word in query}
    needed = min(MIN_SHARED_WORDS, len(query))
    pool = [c for c in candidates if needed and len(query & c.words) >= needed]
    chosen: list[_Candidate] = []
    covered: set[str] = set()
    while pool and len(chosen) < MAX_SENTENCES:
        best = max(pool, key=lambda c: (_score(c, query, covered, weight), -c.order))
        pool = [c for c in pool if c.text != best.text]
        chosen.append(best)
        covered |= best.words & query
    if not chosen:
        return NOT_FOUND
    return " ".join(f"{c.text} [{c.document_id}]" for c in sorted(chosen, key=lambda c: c.order))


def _score(candidate: _Candidate, query: set[str], covered: set[str], weight: dict[str, float]) -> float:
    shared = query & candidate.words
    # A word that is covered already counts half; long sentences share words by their length alone.
    value = math.fsum(weight[word] * (0.5 if word in covered else 1.0) for word in sorted(shared))
    return value / math.log(8 + len(candidate.words))


def unsupported_statements(answer: str, documents: list[Document]) -> list[str]:
    """Return the statements of an answer that no cited document contains, and those without a citation."""
    contents = {document.id: " ".join(document.content.split()) for document in documents}
    unsupported = []
    position = 0
    for citation in _CITATION.finditer(answer):
        statement = answer[position : citation.start()].strip()
        if citation.group(1) not in contents:
            continue  # brackets of the text's own: only a known id ends a statement
        if statement not in contents[citation.group(1)]:
            unsupported.append(statement)
        position = citation.end()
    rest = answer[position:].strip()
    return [*unsupported, rest] if rest else unsupported
