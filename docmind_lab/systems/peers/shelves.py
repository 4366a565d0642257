"""The corpus divided among the peers, and the passages that a peer is sent with a question.

The parent knows where every passage stands, and a peer knows nothing but what it is sent: so a task carries those
passages of the peer's shelf that share most words with the question. Computed on the spot, without a search service.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.scripted_model.extraction import content_words
from docmind_lab.systems.base.corpus import Chunk

PASSAGES = 5  # as many as a search of the supervisor gives


@dataclass(frozen=True)
class Shelf:
    """The part of the corpus that one peer reads. peer: its name. topics: those of its passages, in order."""

    peer: str
    chunks: tuple[Chunk, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the passages, each once."""
        return tuple(dict.fromkeys(chunk.topic for chunk in self.chunks))

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        return [frozenset(content_words(chunk.searchable)) for chunk in self.chunks]

    @cached_property
    def _weight(self) -> Mapping[str, float]:
        """Weight of each word; rare words count more."""
        frequency = Counter(word for words in self._words for word in words)
        return {word: math.log(1 + len(self.chunks) / count) for word, count in frequency.items()}

    def passages(self, question: str, limit: int = PASSAGES) -> list[Chunk]:
        """Return the passages that share most words with the question, best first; fewer if fewer share any."""
        query = sorted(set(content_words(question)) & self._weight.keys())

        def worth(index: int) -> float:
            words = self._words[index]
            return math.fsum(self._weight[word] for word in query if word in words) / math.log(8 + len(words))

        ranked = sorted(range(len(self.chunks)), key=lambda index: (-worth(index), index))
        return [self.chunks[index] for index in ranked[:limit] if worth(index) > 0]


def shelves(chunks: Sequence[Chunk], peers: Sequence[str]) -> tuple[Shelf, ...]:
    """Divide the chunks into shelves of whole topics, about equal ones. Raises: ConfigurationError: too few topics."""
    by_topic: dict[str, list[Chunk]] = {}
    for chunk in sorted(chunks, key=lambda chunk: chunk.topic):
        by_topic.setdefault(chunk.topic, []).append(chunk)
    if len(by_topic) < len(peers):
        raise ConfigurationError(f"a corpus of {len(by_topic)} topics cannot be shared by {len(peers)} peers")
    shared: list[list[Chunk]] = [[] for _ in peers]
    for number, chunks_of_topic in enumerate(by_topic.values()):
        # By what stands before it; but a peer never goes without, however large the topics before are.
        before = sum(len(part) for part in shared)
        share = min(before * len(peers) // len(chunks), number)
        at_least = len(peers) - (len(by_topic) - number)
        shared[max(share, at_least, 0)].extend(chunks_of_topic)
    return tuple(Shelf(peer, tuple(part)) for peer, part in zip(peers, shared, strict=True))


def task_for(shelf: Shelf, question: str) -> dict[str, Any]:
    """Return the task that a peer is sent: the question and its best passages."""
    passages = [{"id": chunk.id, "content": chunk.text} for chunk in shelf.passages(question)]
    return {"question": question, "passages": passages}
