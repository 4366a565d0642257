"""Run a graph and observe the run: its nodes, their calls, work in threads, and where no deadline can cut.

scene = observe_run(bench, "unguarded", question_id, fault="http_500:plan")
scene.longest_code("plan")          # (from, to): the longest stretch of the node without a request under way
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.graph import START

from docmind_lab.alternatives.base import AroundAlternative, Inputs, Outcome, Runnable
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.addresses import redact_url
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.users_code import line_of_error
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.late_runs import (
    TimeSpan,
    length_of,
    length_s,
    requests_of,
    span_of,
    spans_of,
    within,
    without,
)
from docmind_lab.experiments.doctor.limits_in_force import Limit, client_of
from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.faults import Fault
from docmind_lab.systems.own.graph_calls import Place, RunTree
from docmind_lab.systems.own.own_requests import SentRequest, observer_of_calling_code
from docmind_lab.systems.own.references import one_line
from docmind_lab.tables.records import CallRecord

# So long that no limit is met, and no alternative has anything to do.
AMPLE_S = 3600.0
# What is late by less is the sum of floating point numbers.
_NO_TIME_S = 1e-6

# A loop that stands still for less is not seen to; no slack worth having is that small.
_TICK_S = 0.01
# Retries wait for seconds, and go on for minutes.
_TICK_OF_RETRIES_S = 0.05

UNTIMED = "unguarded"
UNTIMED_ASYNC = "C"
INTERRUPTED = "an interrupt"


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
    names of those that began. clients: limits of what sent each call, by the call's id.
    """

    deadline_key: str = ""
    tick_s: float = 0.0
    visits: list[Visit] = field(default_factory=list)
    blocked: list[tuple[float, float]] = field(default_factory=list)
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent: dict[str, dict[int, SentRequest]] = field(default_factory=dict)
    tools: set[str] = field(default_factory=set)
    clients: dict[str, tuple[Limit, ...]] = field(default_factory=dict)

    def note_client(self, attempt: Attempt) -> None:
        """Note what sends a call, at its first attempt."""
        if attempt.call.call_id not in self.clients:
            self.clients[attempt.call.call_id] = client_of(attempt)


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


@dataclass(frozen=True)
class ObservedAlternative(AroundAlternative):
    """Runs a graph under an alternative and observes it."""

    seen: Observation

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: Recorder) -> Outcome:
        """Run the graph as the alternative does, and observe it."""

        def since() -> float:
            return recorder.clock.now() - recorder.started_at

        visits = _NodeVisits(self.seen, since)
        watched: Any = runnable.with_config({"callbacks": [visits]})
        watch = observer_of_calling_code()
        recorder.on_attempt = self.seen.note_client
        looking = None
        if self.alternative.node_mode == "async" and self.seen.tick_s:
            looking = shared_loop().submit(self._watch_loop(since))
        try:
            return self.alternative.run(watched, inputs, deadline, recorder)
        finally:
            if looking is not None:
                looking.cancel()
            if watch is not None:
                self.seen.sent = watch.sent
                for (method, url, node), count in watch.answered.items():
                    self.seen.requests[f"{method} {redact_url(url)}", node] += count

    async def _watch_loop(self, since: Callable[[], float]) -> None:
        tick_s = self.seen.tick_s
        while True:
            due_at_s = since() + tick_s
            await asyncio.sleep(tick_s)
            if since() - due_at_s > _NO_TIME_S:
                self.seen.blocked.append((due_at_s, since()))


def _is_tool_calls(inputs: Any) -> bool:
    return isinstance(inputs, list) and all(
        isinstance(item, Mapping) and item.get("type") == "tool_call" for item in inputs
    )


def _has_key(inputs: Any, key: str) -> bool:
    """Whether a node's input has a value for the key; a tool's input holds the state of its agent."""
    if isinstance(inputs, Mapping):
        inner = inputs.get("state")
        return inputs.get(key) is not None or (isinstance(inner, Mapping) and inner.get(key) is not None)
    return getattr(inputs, key, None) is not None if key else False


@dataclass(frozen=True)
class Scene:
    """One run without a limit, with or without a fault, and what was observed of it."""

    trial: Trial
    measured: MeasuredRun
    seen: Observation

    @property
    def watched_s(self) -> float:
        """Seconds of the run after which nothing has an end of its own: it is given up, or at its deadline."""
        run = self.measured.run
        return run.horizon_s if run.alternative == UNTIMED else run.decision_timeout_s

    @property
    def failed(self) -> str:
        """Name of the exception that ended the run, or "an interrupt"; empty if it completed."""
        if self.measured.run.outcome == "interrupted":
            return INTERRUPTED
        return self.measured.outcome.error_type if self.measured.run.outcome == "failed" else ""

    def failure_in_words(self) -> str:
        """Return the exception that ended the run: its type and message, its node, and the line of the user's code."""
        error = self.measured.outcome.error
        if error is None:
            return self.failed
        node = self.measured.run.error_node
        line = line_of_error(error)
        places = [f"in node {node}" if node else "", f"at {line}" if line else ""]
        return " ".join([one_line(error), *filter(None, places)])

    def outermost(self, node: str = "") -> list[Visit]:
        """Return the visits of the outermost nodes, or of one of them. The tries of a RetryPolicy are one visit."""
        visits: dict[Place, Visit] = {}
        for visit in self.tries(node):
            first = visits.get(visit.place, visit)
            visits[visit.place] = replace(visit, started_at_s=first.started_at_s)
        return list(visits.values())

    def tries(self, node: str = "") -> list[Visit]:
        """Return the executions of the outermost nodes, or of one of them: each try of a RetryPolicy by itself."""
        return [one for one in self.seen.visits if len(one.place.path) == 1 and node in ("", one.place.role)]

    def nodes(self) -> list[str]:
        """Return the names of the outermost nodes in the order of their first visits."""
        return list(dict.fromkeys(visit.place.role for visit in self.outermost()))

    def requests(self, visit: Visit) -> list[CallRecord]:
        """Return the requests that the visit sent."""
        return sent_in(requests_of(self.measured), visit)

    def longest_code(self, node: str) -> TimeSpan:
        """Return the longest part of a visit without a request under way, which no deadline can cut in sync code.

        Of a node that a fault strikes, only the time after a failed request counts: the time before is known already.
        """
        return self._longest_part(node, [(0.0, float("inf"))])

    def stretches(self, node: str) -> list[TimeSpan]:
        """Return where to put a deadline: the longest code, and the longest work that an event loop cannot cancel.

        That is work in a thread, and work that blocks the event loop.
        """
        in_threads = self._longest_part(node, spans_of(self.measured, "thread")[node])
        return [self.longest_code(node), in_threads, self._longest_part(node, self.seen.blocked)]

    def _longest_part(self, node: str, of_these: Iterable[TimeSpan]) -> TimeSpan:
        """Return the longest part of these intervals within a visit, with no request under way; (0.0, 0.0) if none."""
        spans = list(of_these)
        stretches = [
            stretch
            for visit in self.outermost(node)
            if visit.ended_at_s < float("inf")
            for span in within(spans, *self._relevant_span(visit))
            for stretch in without(span, map(span_of, self.requests(visit)))
        ]
        return max(stretches, key=length_of, default=(0.0, 0.0))

    def _relevant_span(self, visit: Visit) -> TimeSpan:
        struck = self.trial.faults[-1:]
        # A node that the fault led to, and did not strike, is as it is.
        if not struck or Fault.parse(struck[0]).role != visit.place.role:
            return visit.started_at_s, visit.ended_at_s
        failed = [span_of(call)[1] for call in self.requests(visit) if call.outcome != "ok"]
        return min(failed, default=visit.ended_at_s), visit.ended_at_s

    def without_key(self, node: str) -> list[str]:
        """Return the nodes at and inside this one whose input did not have the deadline's key."""
        visits = [visit for visit in self.seen.visits if visit.place.role == node and not visit.had_key]
        return list(dict.fromkeys(str(visit.place) for visit in visits))

    def mode(self, node: str) -> str:
        """Return how the node behaves under an event loop: "async", "sync", "blocking async" or "takes no time"."""
        visits = [(visit.started_at_s, visit.ended_at_s) for visit in self.outermost(node)]
        if sum(length_s(within(self.seen.blocked, *visit)) for visit in visits) > _NO_TIME_S:
            return "blocking async"
        if length_s(spans_of(self.measured, "thread")[node]) > _NO_TIME_S:
            return "sync"
        spent_s = sum(map(length_of, visits))
        return "async" if spent_s > _NO_TIME_S else "takes no time"


def sent_in(requests: Iterable[CallRecord], visit: Visit) -> list[CallRecord]:
    """Return those of the requests that the visit sent."""
    role, position = visit.place.role, visit.place.position
    return [call for call in requests if call.role == role and call.step.rpartition(".")[0] == position]


def observe_run(
    bench: TrialBench,
    alternative: str,
    question_id: str,
    *,
    fault: str = "none",
    key: str = "",
    budget_s: float = AMPLE_S,
) -> Scene:
    """Run once and observe the run.

    key: the deadline's key, looked for in the inputs of nodes; empty for none. budget_s: seconds. A loop that stands
    still is looked for only where they are the ample ones: it takes time.
    """
    trial = Trial(alternative, budget_s, question_id, fault)
    tick_s = _TICK_S if fault == "none" else _TICK_OF_RETRIES_S
    seen = Observation(key, tick_s=tick_s if budget_s == AMPLE_S else 0.0)
    return Scene(trial, bench.measure(trial, seen_by=lambda inner: ObservedAlternative(inner, seen)), seen)
