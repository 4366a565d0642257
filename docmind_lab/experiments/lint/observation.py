"""Observe runs of an alternative: inputs of nodes, when nodes were at work, when the event loop was blocked.

seen = Observation()
order = dataclasses.replace(order, alternative=ObservedAlternative(order.alternative, seen))
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.graph import START

from docmind_lab.alternatives.base import Alternative, Inputs, Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder
from docmind_lab.virtual_time import current_clock
from docmind_lab.workloads.own.calls import Place, RunTree
from docmind_lab.workloads.own.watch import SentRequest, watch_of_calling_code

# What is late by less is the sum of floating point numbers.
_ON_TIME_S = 1e-6


@dataclass
class Visit:
    """One execution of a node; instants in seconds since the run's start. had_key: its input had the deadline's key."""

    place: Place
    started_at_s: float
    had_key: bool
    ended_at_s: float = float("inf")
    error_type: str = ""


@dataclass
class Observation:
    """What was observed during one run. deadline_key: the key to look for in the inputs of nodes.

    blocked: (from, to) while the event loop stood still, in seconds since the run's start. tick_s: how long at least
    for it to be seen, since each tick takes an event of the loop's own; 0 for not looking. requests: how often each
    address was asked by which node. sent: the requests of each node, by the number that a fault strikes one by. tools:
    names of those that began.
    """

    deadline_key: str = ""
    tick_s: float = 0.0
    visits: list[Visit] = field(default_factory=list)
    blocked: list[tuple[float, float]] = field(default_factory=list)
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent: dict[str, dict[int, SentRequest]] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)


class _NodeVisits(BaseCallbackHandler):
    """Callback handler that notes a visit for each node at any depth, and whether its input had the key."""

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True

    def __init__(self, seen: Observation, since: Callable[[], float]) -> None:
        super().__init__()
        self.tree = RunTree()
        self._seen, self._since = seen, since
        self._open: dict[UUID, Visit] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, **details: Any) -> None:
        """Note the start of a node, or of any other runnable that has children."""
        run_id, parent_run_id = details["run_id"], details.get("parent_run_id")
        above = self.tree.place_of(parent_run_id)
        self.tree.note_start(run_id, parent_run_id, details.get("tags"), details.get("metadata"))
        place = self.tree.place_of(run_id)
        if place is above or place.path[-1:] == (START,):
            return
        had_key = self._read_from_state(place) if _is_tool_calls(inputs) else _has_key(inputs, self._seen.deadline_key)
        visit = Visit(place, self._since(), had_key)
        self._open[run_id] = visit
        self._seen.visits.append(visit)

    def _read_from_state(self, place: Place) -> bool:
        """Whether a node that is sent tool calls had the key: it reads the state that the node before it had."""
        beside = [visit for visit in self._seen.visits if visit.place.path[:-1] == place.path[:-1]]
        return beside[-1].had_key if beside else False

    def on_tool_start(self, serialized: Any, input_str: Any, **details: Any) -> None:
        """Note the start of a tool and its name, since it may run a graph with nodes of its own."""
        self._seen.tools.add(str((serialized or {}).get("name") or ""))
        self.tree.note_start(details["run_id"], details.get("parent_run_id"), None, None)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a node has ended."""
        self._end_visit(run_id, "")

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Note that a node has raised."""
        self._end_visit(run_id, type(error).__name__)

    def _end_visit(self, run_id: UUID, error_type: str) -> None:
        visit = self._open.pop(run_id, None)
        if visit is not None:
            visit.ended_at_s, visit.error_type = self._since(), error_type


class ObservedAlternative:
    """A wrapper that runs an alternative and observes it; all other attributes are those of the alternative."""

    def __init__(self, inner: Alternative, seen: Observation) -> None:
        self._inner, self._seen = inner, seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Run the graph as the alternative does, and observe it."""

        def since() -> float:
            return recorder.clock.now() - recorder.started_at

        visits = _NodeVisits(self._seen, since)
        watched: Any = runnable.with_config({"callbacks": [visits]})
        watch = watch_of_calling_code(current_clock())
        looking = None
        if self._inner.node_mode == "async" and self._seen.tick_s:
            looking = shared_loop().submit(self._watch_loop(since))
        try:
            return self._inner.run(watched, inputs, deadline, recorder)
        finally:
            if looking is not None:
                looking.cancel()
            if watch is not None:
                self._seen.sent = watch.sent
                for (method, url, node), count in watch.answered.items():
                    self._seen.requests[f"{method} {redact_url(url)}", node] += count

    async def _watch_loop(self, since: Callable[[], float]) -> None:
        tick_s = self._seen.tick_s
        while True:
            due_at_s = since() + tick_s
            await asyncio.sleep(tick_s)
            if since() - due_at_s > _ON_TIME_S:
                self._seen.blocked.append((due_at_s, since()))


def _is_tool_calls(given: Any) -> bool:
    return isinstance(given, list) and all(
        isinstance(item, Mapping) and item.get("type") == "tool_call" for item in given
    )


def _has_key(given: Any, key: str) -> bool:
    """Whether a node's input has a value for the key; a tool's input holds the state of its agent."""
    if isinstance(given, Mapping):
        inner = given.get("state")
        return given.get(key) is not None or (isinstance(inner, Mapping) and inner.get(key) is not None)
    return getattr(given, key, None) is not None if key else False


TimeSpan = tuple[float, float]


def length_of(interval: TimeSpan) -> float:
    """Return the length of an interval in seconds."""
    return interval[1] - interval[0]


def length_s(intervals: Iterable[TimeSpan]) -> float:
    """Return the seconds that the union of the intervals covers."""
    return sum(to - start for start, to in union(intervals))


def union(intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the intervals in order, with those that touch merged."""
    made: list[TimeSpan] = []
    for start, to in sorted(intervals):
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], to))
        elif to > start:
            made.append((start, to))
    return made


def within(intervals: Iterable[TimeSpan], start: float, to: float) -> list[TimeSpan]:
    """Return the parts of the intervals that lie between two instants."""
    clipped = ((max(start, begun), min(to, ended)) for begun, ended in intervals)
    return [(begun, ended) for begun, ended in clipped if ended > begun]


def without(whole: TimeSpan, intervals: Iterable[TimeSpan]) -> list[TimeSpan]:
    """Return the parts of an interval that no other interval covers; one of length 0 still divides it."""
    made, at = [], whole[0]
    for start, to in sorted(intervals):
        if start > whole[1] or to < whole[0]:
            continue
        if start > at:
            made.append((at, start))
        at = max(at, to)
    if whole[1] > at:
        made.append((at, whole[1]))
    return made
