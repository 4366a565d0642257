"""Which queries have been asked: one that is nearly the same is not asked of the same source again.

A query that another source was asked says nothing of this one, so each source has its own record, over all hypotheses
of the task.
"""

from __future__ import annotations

import re
import threading

SAME_FROM = 0.8
"""Word Jaccard from which on two queries are one."""

_WORD = re.compile(r"\w+")


def words_of(query: str) -> frozenset[str]:
    """The different words of a query, in lower case."""
    return frozenset(_WORD.findall(query.casefold()))


def word_jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words over all words of two queries, in [0, 1]; 1 for two without any."""
    everything = one | other
    return len(one & other) / len(everything) if everything else 1.0


class AskedQueries:
    """The queries of one task. Hypotheses that run side by side share it."""

    def __init__(self) -> None:
        self._asked: dict[str, list[frozenset[str]]] = {}
        self._lock = threading.Lock()

    def add(self, source: str, query: str) -> bool:
        """Whether the query is new to the source; if so it is from now on asked, in one step with the look."""
        words = words_of(query)
        with self._lock:
            asked = self._asked.setdefault(source, [])
            if any(word_jaccard(words, other) >= SAME_FROM for other in asked):
                return False
            asked.append(words)
            return True
