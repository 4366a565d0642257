"""The model server of a crowd: slots, the queue in front of them, and the end of calls whose clients have left.

Queue policies say which of the waiting calls is served next, and which is refused:

    first_come              in the order of their coming
    deadline_first          the call whose query has the earliest deadline
    drop_expired            first come, but a call whose query's deadline has passed is refused when its turn comes
    admit_by_prediction     first come, but the first call of a query is refused when the query would end too late

A server knows the deadline of a query where its client sends the time left. Without that, only `first_come` is
possible.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Final

from docmind_lab.core.server_behaviour import Phase, ServerBehaviour
from docmind_lab.experiments.load.on_traces.shapes import CallShape, RunShape

POLICIES: Final = ("first_come", "deadline_first", "drop_expired", "admit_by_prediction")
"""The names of the queue policies."""


@dataclass(eq=False, slots=True)
class Query:
    """A query under way.

    waits_for: of each call and mark, how many others it still waits for. active: calls and marks that have begun, or
    will after a pause. is_stopping: only steps that have begun go on. is_over: nothing begins.
    """

    number: int
    shape: RunShape
    deadline_at_s: float
    waits_for: list[int]
    active: int = 0
    requests: list[Request] = field(default_factory=list)
    steps: set[int] = field(default_factory=set)
    is_admitted: bool = False
    is_stopping: bool = False
    is_over: bool = False
    is_back: bool = False
    has_ended: bool = False
    has_result: bool = False


@dataclass(eq=False, slots=True)
class Request:
    """A model call at the server, at its place in the run of its query.

    Instants are seconds since the begin of the crowd. served_at_s: NaN before it had a slot. is_wanted: whether its
    client waits for it. ends_at_write: whether the work ends with the first write, since its client left while it
    waited.
    """

    query: Query
    place: int
    call: CallShape
    received_at_s: float
    served_at_s: float = math.nan
    is_wanted: bool = True
    is_done: bool = False
    ends_at_write: bool = False

    @property
    def has_slot(self) -> bool:
        """Whether it had a slot."""
        return not math.isnan(self.served_at_s)


class Slots:
    """Slots, and the calls that wait for one: the one with the earliest deadline is next, or the first that came."""

    def __init__(self, count: int | None, *, deadline_first: bool) -> None:
        self.count = math.inf if count is None else count
        self._free = self.count
        self._deadline_first = deadline_first
        self._queue: list[tuple[float, int, Request]] = []
        self._number = 0
        self.waiting = 0

    def take(self, request: Request) -> bool:
        """Give the call a slot if one is free, or let it wait. Returns whether it has one."""
        if self._free > 0:
            self._free -= 1
            return True
        self.waiting += 1
        self._number += 1
        place = request.query.deadline_at_s if self._deadline_first else 0.0
        heapq.heappush(self._queue, (place, self._number, request))
        return False

    def forget(self) -> None:
        """Count one waiting call less; it has gone, and its turn will not come."""
        self.waiting -= 1

    def pass_on(self) -> Request | None:
        """Return the next waiting call, which has the slot that came free; None if none waits and the slot is free."""
        while self._queue:
            request = heapq.heappop(self._queue)[2]
            if not request.is_done:
                self.waiting -= 1
                return request
        self._free += 1
        return None


def end_when_left(behaviour: ServerBehaviour, request: Request, at_s: float) -> float:
    """Return when the server ends a call whose client leaves now; inf where it goes on to its end.

    A call that waits and ends with the next write is marked, since its slot has not come.
    """
    phase = _phase(request, at_s)
    delay_s = behaviour.delay_s(phase, at_s - request.received_at_s)
    if delay_s < math.inf:
        return at_s + delay_s
    if behaviour.ends_at_next_write(phase) and request.call.streams:
        if request.has_slot:
            return next_write(request, at_s)
        request.ends_at_write = True
    return math.inf


def next_write(request: Request, at_s: float) -> float:
    """Return the instant after this one at which the server writes to the client of a streaming call.

    Where the writes were not recorded, its tokens come evenly, so the next one comes at once after the first.
    """
    since_s = at_s - request.served_at_s
    after = next((each for each in request.call.writes_s if each > since_s), None)
    if after is None:
        after = max(since_s, request.call.generating_s)
    return request.served_at_s + after


def _phase(request: Request, at_s: float) -> Phase:
    if not request.has_slot:
        return "queue"
    is_generating = at_s - request.served_at_s >= request.call.generating_s
    if request.call.streams:
        return "mid_stream" if is_generating else "before_first_token"
    return "generation" if is_generating else "prefill"
