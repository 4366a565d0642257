"""Run a graph without a limit, sync and async: its nodes, their calls, and where no deadline can cut.

scene = observe_run(bench, "unguarded", question_id, fault="http_500:plan")
scene.longest_code("plan")          # (from, to): the longest stretch of the node without a request under way
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from docmind_lab.analysis.tables.records import CallRecord
from docmind_lab.core.users_code import line_of_error
from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.lint.bench import TrialBench
from docmind_lab.experiments.lint.observation import (
    Observation,
    ObservedAlternative,
    TimeSpan,
    Visit,
    length_of,
    length_s,
    within,
    without,
)
from docmind_lab.experiments.lint.overruns import requests_of, span_of, threads_of
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.services.faults import Fault
from docmind_lab.workloads.own.references import one_line

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


@dataclass(frozen=True)
class Scene:
    """One run without a limit, with or without a fault, and what was observed of it."""

    trial: Trial
    measured: MeasuredRun
    seen: Observation

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
        """Return the visits of the outermost nodes, or of one of them."""
        visits = [visit for visit in self.seen.visits if len(visit.place.path) == 1]
        return [visit for visit in visits if not node or visit.place.role == node]

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
        in_threads = self._longest_part(node, threads_of(self.measured)[node])
        return [self.longest_code(node), in_threads, self._longest_part(node, self.seen.blocked)]

    def _longest_part(self, node: str, of_these: Iterable[TimeSpan]) -> TimeSpan:
        """Return the longest part of these intervals within a visit, with no request under way; (0.0, 0.0) if none."""
        spans = list(of_these)
        found = [
            stretch
            for visit in self.outermost(node)
            if visit.ended_at_s < float("inf")
            for span in within(spans, *self._relevant_span(visit))
            for stretch in without(span, map(span_of, self.requests(visit)))
        ]
        return max(found, key=length_of, default=(0.0, 0.0))

    def _relevant_span(self, visit: Visit) -> TimeSpan:
        struck = self.trial.faults[-1:]
        # A node that the fault led to, and did not strike, is as it is.
        if not struck or Fault.parse(struck[0]).role != visit.place.role:
            return visit.started_at_s, visit.ended_at_s
        failed = [span_of(call)[1] for call in self.requests(visit) if call.outcome != "ok"]
        return min(failed, default=visit.ended_at_s), visit.ended_at_s

    def blocked_s(self, node: str) -> float:
        """Return for how many seconds the event loop was blocked while the node was at work."""
        return sum(
            length_s(within(self.seen.blocked, visit.started_at_s, visit.ended_at_s)) for visit in self.outermost(node)
        )

    def in_threads_s(self, node: str) -> float:
        """Return how many seconds of the node's work the event loop handed to threads."""
        return length_s(threads_of(self.measured)[node])

    def without_key(self, node: str) -> list[str]:
        """Return the nodes at and inside this one whose input did not have the deadline's key."""
        visits = [visit for visit in self.seen.visits if visit.place.role == node and not visit.had_key]
        return list(dict.fromkeys(str(visit.place) for visit in visits))

    def mode(self, node: str) -> str:
        """Return how the node behaves under an event loop: "async", "sync", "blocking async" or "takes no time"."""
        if self.blocked_s(node) > _NO_TIME_S:
            return "blocking async"
        if self.in_threads_s(node) > _NO_TIME_S:
            return "sync"
        spent_s = sum(visit.ended_at_s - visit.started_at_s for visit in self.outermost(node))
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
