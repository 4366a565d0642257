"""The ledger of one research: queries, kept results, and how each source ended.

Several sources write at once; the ledger is their one point of order.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from docmind_lab.core.clock import WALL
from docmind_lab.network.recorder import current_recorder, note_event
from docmind_lab.systems.research.exits import COMPLETE, Completion
from docmind_lab.systems.research.sources import Item
from docmind_lab.systems.research.tasks import ResearchLimits, ResearchTask

SAME_FROM = 0.8
"""Word Jaccard from which on two queries are one."""

_WORD = re.compile(r"\w+")


def words_of(query: str) -> frozenset[str]:
    """Return the distinct words of a query, in lower case."""
    return frozenset(_WORD.findall(query.casefold()))


def word_jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return shared words divided by all words of two queries, in [0, 1]; 1 if neither has any."""
    everything = one | other
    return len(one & other) / len(everything) if everything else 1.0


@dataclass(frozen=True)
class SearchAttempt:
    """One query put to one source. found, accepted: numbers of results; unfiltered: kept without filtering.

    new: keys of those that this source had not given for this hypothesis before. error: type of what it failed with,
    empty if it did not. started_at_s, ended_at_s: seconds since the start of the research.
    """

    hypothesis: str
    source: str
    query: str
    found: int = 0
    accepted: int = 0
    unfiltered: int = 0
    new: tuple[str, ...] = ()
    error: str = ""
    started_at_s: float = 0.0
    ended_at_s: float = 0.0


class KeptDocuments(Sequence[Mapping[str, Any]]):
    """A live view of a ledger's kept results as documents: each access shows what is kept at that instant.

    A graph shows its state when a step is over; sources side by side are one step that may take an hour. A run
    cut in the middle of it has, through this, what was kept. `tuple(kept)` stays as it is.
    """

    def __init__(self, ledger: ResearchLedger) -> None:
        self._ledger = ledger

    def _snapshot(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(item.as_document() for item in self._ledger.items())

    def __getitem__(self, index: Any) -> Any:
        return self._snapshot()[index]

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._snapshot())

    def __len__(self) -> int:
        return len(self._ledger.items())

    def __reduce__(self) -> tuple[Any, ...]:
        # A ledger belongs to its process; what leaves it is what there is now.
        return tuple, (list(self._snapshot()),)


class ResearchLedger:
    """The record of what one research has done."""

    def __init__(self, limits: ResearchLimits) -> None:
        self.limits = limits
        self.task: ResearchTask | None = None
        self.started_at: float | None = None
        self._asked: dict[str, list[frozenset[str]]] = {}
        self.documents = KeptDocuments(self)
        self._kept: dict[str, Item] = {}
        self._attempts: list[SearchAttempt] = []
        self._completions: list[Completion] = []
        self._lock = threading.Lock()

    # ---- time

    def begin(self, task: ResearchTask) -> None:
        """Start the research and its budget now; later calls, as after a resume, change nothing."""
        if self.started_at is None:
            self.task, self.started_at = task, WALL.now()

    def elapsed_s(self) -> float:
        """Return the seconds since the start of the research."""
        return 0.0 if self.started_at is None else WALL.now() - self.started_at

    def budget_left_s(self) -> float:
        """Return the seconds left of the research budget; negative once it is over."""
        return self.limits.budget_s - self.elapsed_s()

    # ---- what was done

    def ask(self, source: str, query: str) -> bool:
        """Note a query if it is new to the source, and return whether it was; check and note are atomic."""
        words = words_of(query)
        with self._lock:
            earlier = self._asked.setdefault(source, [])
            if any(word_jaccard(words, other) >= SAME_FROM for other in earlier):
                return False
            earlier.append(words)
            return True

    def record(self, attempt: SearchAttempt, items: Sequence[Item] = ()) -> None:
        """Record an attempt that is over and the items to keep."""
        with self._lock:
            is_first = not self._kept and bool(items)
            self._attempts.append(attempt)
            for item in items:
                self._kept.setdefault(item.key, item)
        recorder = current_recorder()
        if recorder is not None:
            recorder.note_result(None, self.documents)
            if is_first:
                # The run's documents are a view of what is kept, whoever has seen a step end.
                recorder.event("result_available")
            recorder.event(
                "query_recorded",
                "retrieval",
                hypothesis=attempt.hypothesis,
                source=attempt.source,
                found=attempt.found,
                accepted=attempt.accepted,
                unfiltered=attempt.unfiltered,
                new=len(attempt.new),
                error=attempt.error,
            )

    def complete(self, completion: Completion) -> None:
        """Record that a source has ended, also as an event."""
        with self._lock:
            self._completions.append(completion)
        note_event(COMPLETE, "source", **asdict(completion))

    def items(self) -> tuple[Item, ...]:
        """Return the items kept so far, each once, in the order they were kept."""
        with self._lock:
            return tuple(self._kept.values())

    def attempts(self) -> tuple[SearchAttempt, ...]:
        """Return the attempts that are over."""
        with self._lock:
            return tuple(self._attempts)

    def completions(self) -> tuple[Completion, ...]:
        """Return how each source ended, in the order they ended."""
        with self._lock:
            return tuple(self._completions)
