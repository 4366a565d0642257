"""The queue of a model server: which requests are served, which wait, and when each is started.

    queue = SlotQueue[str](slots=1)
    queue.arrive("a", at=0.0)       # (Turn("a", starts_at=0.0),)
    queue.arrive("b", at=0.5)       # (): it waits
    queue.leave("a", at=2.0)        # (Turn("b", starts_at=2.0),)

A state machine and nothing else: it does not wait, it looks at no clock, and it is used from one thread. A door tells
it who comes and goes, and lets those start whom it names.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from docmind_lab.core.errors import ConfigurationError

RequestT = TypeVar("RequestT", bound=Hashable)


@dataclass(frozen=True)
class Turn(Generic[RequestT]):
    """A request whose turn has come. starts_at: instant it is served from, not before its receipt or a free slot."""

    request: RequestT
    starts_at: float


class SlotQueue(Generic[RequestT]):
    """Requests being served and waiting, first come first served. slots: served at once; None for no limit."""

    def __init__(self, slots: int | None) -> None:
        if slots is not None and slots < 1:
            raise ConfigurationError(f"slots must be at least 1, or None for no limit: got {slots}")
        self.slots = slots
        self._waiting: dict[RequestT, float] = {}  # in order of arrival
        self._served: set[RequestT] = set()
        self._freed_at: list[float] = []  # a heap: of each slot that was used and is free, since when

    @property
    def waiting(self) -> tuple[RequestT, ...]:
        """The waiting requests, next one first."""
        return tuple(self._waiting)

    @property
    def served(self) -> frozenset[RequestT]:
        """The requests that have a slot."""
        return frozenset(self._served)

    def arrive(self, request: RequestT, at: float) -> tuple[Turn[RequestT], ...]:
        """Add a request; return its turn if it starts now, nothing if it waits. at: instant of its receipt."""
        self._waiting[request] = at
        return self._start_waiting()

    def leave(self, request: RequestT, at: float) -> tuple[Turn[RequestT], ...]:
        """Remove a request, served or waiting; return the turns of the requests that start now."""
        self._waiting.pop(request, None)
        if request in self._served:
            self._served.remove(request)
            if self.slots is not None:
                heapq.heappush(self._freed_at, at)
        return self._start_waiting()

    def _start_waiting(self) -> tuple[Turn[RequestT], ...]:
        turns = []
        while self._waiting and (self.slots is None or len(self._served) < self.slots):
            request = next(iter(self._waiting))
            turns.append(Turn(request, max(self._waiting.pop(request), self._take_free_slot())))
            self._served.add(request)
        return tuple(turns)

    def _take_free_slot(self) -> float:
        """Take the slot that has been free for longest, and return since when."""
        used = len(self._served) + len(self._freed_at)
        return -math.inf if self.slots is None or used < self.slots else heapq.heappop(self._freed_at)
