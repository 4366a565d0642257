"""Queries side by side at one model server: recorded runs, each begun at its instant, as events in order of time.

    rows = Crowd(design, cell).run(instants_s, shapes)

A call that waits longer for its slot than it did when it was recorded moves the rest of its run by that. What a caller
has left behind goes on by the alternative's rule and the server's behaviour, and keeps its slots, until the horizon of
its query. What is ready exactly at a deadline is late.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from docmind_lab.core.deadlines import PropagationPolicy
from docmind_lab.experiments.load.load_design import LoadCell, TracedLoadDesign
from docmind_lab.experiments.load.on_traces.shapes import RunShape
from docmind_lab.experiments.load.on_traces.traced_server import Query, Request, Slots, end_when_left, next_write
from docmind_lab.experiments.measurement.derive import horizon_of
from docmind_lab.findings.what_if.outcomes import ENDINGS
from docmind_lab.tables.traces.rules import NamedRule

_STEP_OF: Final = {"to_end_of_step": 0, "to_end_of_outer_step": 1}
# With this much left or less a propagated deadline refuses a call.
_FLOOR_S: Final = PropagationPolicy().floor_s
# Instants that were subtracted from each other in two ways differ in their last digits only.
_SAME_INSTANT_S: Final = 1e-9
_ENDING: Final = {name: place for place, name in enumerate(ENDINGS)}
# Of what happens at one instant, deadlines come first.
_DEADLINE, _OTHER = 0, 1


def _mean(values: Iterable[float]) -> float:
    """Return the mean of what ended."""
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else 0.0


@dataclass(eq=False)
class CrowdRows:
    """What became of the queries, and of their calls in the order in which the server's work on them ended.

    Instants are seconds since the begin of the crowd. outcome: its place in `ENDINGS`. returned_at_s: NaN for a caller
    that was not back by the horizon. served_from_s: NaN for a call that never had a slot.
    """

    outcome: array[int]
    returned_at_s: array[float]
    request_query: array[int] = field(default_factory=lambda: array("q"))
    received_at_s: array[float] = field(default_factory=lambda: array("d"))
    served_from_s: array[float] = field(default_factory=lambda: array("d"))
    left_at_s: array[float] = field(default_factory=lambda: array("d"))
    events: int = 0


class Crowd:
    """The queries of a cell at one model server, under one alternative."""

    def __init__(self, design: TracedLoadDesign, cell: LoadCell[NamedRule]) -> None:
        self._rule, self._behaviour, self._policy = cell.arm.rule, design.behaviour, cell.queue_policy
        self._timeout_s = cell.decision_timeout_s
        self._horizon_s = horizon_of(cell.decision_timeout_s, design.horizon_factor)
        # The instants of a pace count from the first model call of the crowd.
        self._pace, self._first_call_at_s = design.pace, math.nan
        self._slots = Slots(cell.slots, deadline_first=cell.queue_policy == "deadline_first")
        self._step = _STEP_OF.get(self._rule.work)
        self._events: list[tuple[float, int, int, Callable[[float, Any], None], Any]] = []
        self._pushed = 0
        self._rows = CrowdRows(array("b"), array("d"))
        # What a server that admits by prediction knows of queries: averages over the recorded runs.
        shapes = design.recorded.shapes
        self._run_s = _mean(shape.takes_s for shape in shapes)
        self._call_s = _mean(call.service_s for shape in shapes for call in shape.calls if call.is_model)
        self._calls_in_a_row = _mean(float(shape.calls_in_a_row) for shape in shapes)

    def run(self, instants_s: Iterable[float], shapes: Iterable[RunShape]) -> CrowdRows:
        """Run the queries, each with its instant and its run, in order, and return what became of them."""
        arrivals = zip(instants_s, shapes, strict=True)
        events, coming = self._events, next(arrivals, None)
        while events or coming is not None:
            if coming is not None and (not events or coming[0] <= events[0][0]):
                self._arrive(*coming)
                coming = next(arrivals, None)
            else:
                at_s, _, _, happen, what = heapq.heappop(events)
                happen(at_s, what)
        self._rows.events = self._pushed + len(self._rows.outcome)
        return self._rows

    def _push(self, at_s: float, happen: Callable[[float, Any], None], what: Any, order: int = _OTHER) -> None:
        self._pushed += 1
        heapq.heappush(self._events, (at_s, order, self._pushed, happen, what))

    # ---- a query

    def _arrive(self, at_s: float, shape: RunShape) -> None:
        query = Query(len(self._rows.outcome), shape, at_s + self._timeout_s, list(shape.waits_for))
        self._rows.outcome.append(_ENDING["unfinished"])
        self._rows.returned_at_s.append(math.nan)
        self._push(query.deadline_at_s, self._deadline, query, _DEADLINE)
        for place, count in enumerate(shape.waits_for):
            if not count:
                self._begin_after_pause(at_s, query, place)

    def _deadline(self, at_s: float, query: Query) -> None:
        rule = self._rule
        if query.active or query.requests:
            self._push(at_s - self._timeout_s + self._horizon_s, self._horizon, query, _DEADLINE)
        if query.has_ended or query.is_over:
            return
        if rule.caller == "leaves":
            self._come_back(at_s, query, self._early_outcome(query))
        if rule.work == "cut":
            if rule.cut_after_s:
                self._push(at_s + rule.cut_after_s, self._cut, query, _DEADLINE)
            else:
                self._cut(at_s, query)
        elif self._step is not None:
            query.is_stopping = True

    def _early_outcome(self, query: Query) -> str:
        return "partial" if self._rule.returns_result and query.has_result else "timed_out"

    def _cut(self, at_s: float, query: Query, outcome: str = "") -> None:
        """Let the clients of a query leave its calls, and its caller come back."""
        if query.has_ended or query.is_over:
            return
        query.is_over = True
        for request in list(query.requests):
            self._leave(at_s, request)
        self._come_back(at_s, query, outcome or self._early_outcome(query))

    def _horizon(self, at_s: float, query: Query) -> None:
        """Cut what is left of a query, whatever the server does with calls whose clients have left."""
        query.is_over = query.is_back = True
        for request in list(query.requests):
            request.is_wanted = False
            self._end_work(at_s, request)

    def _come_back(self, at_s: float, query: Query, outcome: str) -> None:
        if not query.is_back:
            query.is_back = True
            self._rows.outcome[query.number] = _ENDING[outcome]
            self._rows.returned_at_s[query.number] = at_s

    # ---- its calls

    def _begin_after_pause(self, at_s: float, query: Query, place: int) -> None:
        shape = query.shape
        count = len(shape.calls)
        call = shape.calls[place] if place < count else shape.end if place == count else shape.result
        assert call is not None  # a mark without a result is in no list
        query.active += 1
        if call.pause_s > 0:
            if call.pause_s < math.inf:
                self._push(at_s + call.pause_s, self._begin, (query, place))
        else:
            self._begin(at_s, (query, place))

    def _begin(self, at_s: float, what: tuple[Query, int]) -> None:
        query, place = what
        if query.is_over:
            return
        shape = query.shape
        if place >= len(shape.calls):
            query.active -= 1
            self._reach_mark(at_s, query, is_end=place == len(shape.calls))
            return
        call = shape.calls[place]
        if not self._may_begin(at_s, query, place):
            query.active -= 1
            self._stop_if_idle(at_s, query)
        elif call.is_model:
            self._ask(at_s, Request(query, place, call, at_s))
        elif call.client_s < math.inf:
            self._push(at_s + call.client_s, self._call_ended, what)

    def _may_begin(self, at_s: float, query: Query, place: int) -> bool:
        if self._step is not None:
            call = query.shape.calls[place]
            step = call.steps[self._step]
            if query.is_stopping:
                begun = at_s - call.since_step_s[self._step] <= query.deadline_at_s
                return step in query.steps or begun
            query.steps.add(step)
        return not self._rule.propagates or query.has_ended or at_s < query.deadline_at_s - _FLOOR_S

    def _reach_mark(self, at_s: float, query: Query, *, is_end: bool) -> None:
        if not is_end:
            query.has_result = True
        elif not query.has_ended:
            query.has_ended = True
            is_told_late = self._rule.tells_late and at_s > query.deadline_at_s
            self._come_back(at_s, query, "timed_out" if is_told_late else query.shape.outcome)

    def _call_ended(self, at_s: float, what: tuple[Query, int]) -> None:
        query, place = what
        if query.is_over:
            return
        query.active -= 1
        for later in query.shape.after[place]:
            query.waits_for[later] -= 1
            if not query.waits_for[later]:
                self._begin_after_pause(at_s, query, later)
        self._stop_if_idle(at_s, query)

    def _stop_if_idle(self, at_s: float, query: Query) -> None:
        """End a query whose steps under way at the deadline have ended."""
        if query.is_stopping and not query.active and not query.has_ended and not query.is_over:
            query.is_over = True
            self._come_back(at_s, query, self._early_outcome(query))

    # ---- the server

    def _ask(self, at_s: float, request: Request) -> None:
        query = request.query
        query.requests.append(request)
        if math.isnan(self._first_call_at_s):
            self._first_call_at_s = at_s
        if self._policy == "admit_by_prediction" and not query.is_admitted:
            if self._ends_at(at_s) > query.deadline_at_s:
                self._refuse(at_s, request)
                return
            query.is_admitted = True
        if self._slots.take(request):
            self._serve(at_s, request)

    def _ends_at(self, at_s: float) -> float:
        """When a query whose first call comes now is likely to end."""
        wait_s = self._slots.waiting * self._call_s / self._slots.count
        return at_s + self._run_s + self._calls_in_a_row * wait_s

    def _serve(self, at_s: float, request: Request) -> None:
        pace = self._pace
        if pace is not None and pace.begins_s <= at_s - self._first_call_at_s < pace.ends_s:
            request.call = request.call.slower(pace.factor)
        call = request.call
        request.served_at_s = at_s
        if abs(call.service_s - call.client_s) <= _SAME_INSTANT_S:
            self._push(at_s + call.service_s, self._answer, request)
        else:
            if call.service_s < math.inf:
                self._push(at_s + call.service_s, self._end_work, request)
            if call.client_s < math.inf:
                self._push(at_s + call.client_s, self._client_ended, request)
        if request.ends_at_write:
            self._push(next_write(request, at_s), self._end_work, request)

    def _answer(self, at_s: float, request: Request) -> None:
        if not request.is_done:
            self._end_work(at_s, request)
            self._client_ended(at_s, request)

    def _client_ended(self, at_s: float, request: Request) -> None:
        if request.is_wanted:
            request.is_wanted = False
            self._call_ended(at_s, (request.query, request.place))

    def _leave(self, at_s: float, request: Request) -> None:
        """Let the client of a call leave it."""
        request.is_wanted = False
        ends_at_s = end_when_left(self._behaviour, request, at_s)
        if ends_at_s <= at_s:
            self._end_work(at_s, request)
        elif ends_at_s < math.inf:
            self._push(ends_at_s, self._end_work, request)

    def _end_work(self, at_s: float, request: Request) -> None:
        if request.is_done:
            return
        self._note_end(at_s, request)
        if request.has_slot:
            self._pass_slot_on(at_s)
        else:
            self._slots.forget()

    def _note_end(self, at_s: float, request: Request) -> None:
        request.is_done = True
        request.query.requests.remove(request)
        rows = self._rows
        rows.request_query.append(request.query.number)
        rows.received_at_s.append(request.received_at_s)
        rows.served_from_s.append(request.served_at_s)
        rows.left_at_s.append(at_s)

    def _pass_slot_on(self, at_s: float) -> None:
        drops = self._policy == "drop_expired"
        while (following := self._slots.pass_on()) is not None:
            if not drops or following.query.deadline_at_s > at_s:
                self._serve(at_s, following)
                return
            self._refuse(at_s, following)

    def _refuse(self, at_s: float, request: Request) -> None:
        """Answer a call with an error, which ends its run."""
        self._note_end(at_s, request)
        # Not at once: what the query leaves may free other slots, and so on without end.
        self._push(at_s, self._fail, request.query)

    def _fail(self, at_s: float, query: Query) -> None:
        self._cut(at_s, query, "failed")
