"""What a graph does when nothing limits it: nodes and their calls, sync and async, and where no deadline can cut.

scene = look(bench, "unguarded", question_id, fault="http_500:plan")
scene.longest_code("plan")          # (from, to): the longest stretch of the node without a request under way
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from docmind_lab.analysis.tables.records import CallRecord
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
from docmind_lab.experiments.lint.trials import Trial, TrialBench
from docmind_lab.experiments.measurement.run import MeasuredRun

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


@dataclass(frozen=True)
class Scene:
    """One run that nothing limited, under a fault or none, looked on at."""

    trial: Trial
    measured: MeasuredRun
    seen: Observation

    @property
    def failed(self) -> str:
        """The name of the exception that ended the run; empty if it came to its end."""
        return self.measured.outcome.error_type if self.measured.run.outcome == "failed" else ""

    def outermost(self, node: str = "") -> list[Visit]:
        """Visits of the outermost nodes, or of one of them."""
        visits = [visit for visit in self.seen.visits if len(visit.place.path) == 1]
        return [visit for visit in visits if not node or visit.place.role == node]

    def nodes(self) -> list[str]:
        """The outermost nodes in the order of their first visits."""
        return list(dict.fromkeys(visit.place.role for visit in self.outermost()))

    def requests(self, visit: Visit) -> list[CallRecord]:
        """Those that the visit sent."""
        return sent_in(requests_of(self.measured), visit)

    def longest_code(self, node: str) -> TimeSpan:
        """The longest stretch of a visit without a request under way: what no deadline can cut in sync code.

        Under a fault, of those after a request that failed: what was there before it is no news.
        """
        return self._longest(node, [(0.0, float("inf"))])

    def stretches(self, node: str) -> list[TimeSpan]:
        """Where to put a deadline: into the longest code, and into the longest that an event loop cannot cancel.

        That is code in a thread, and whatever the loop stands still for.
        """
        in_threads = self._longest(node, threads_of(self.measured)[node])
        return [self.longest_code(node), in_threads, self._longest(node, self.seen.blocked)]

    def _longest(self, node: str, of_these: Iterable[TimeSpan]) -> TimeSpan:
        """The longest part of these, in a visit of the node and without a request under way; (0.0, 0.0) if none."""
        spans = list(of_these)
        found = [
            stretch
            for visit in self.outermost(node)
            if visit.ended_at_s < float("inf")
            for span in within(spans, *self._of_interest(visit))
            for stretch in without(span, map(span_of, self.requests(visit)))
        ]
        return max(found, key=length_of, default=(0.0, 0.0))

    def _of_interest(self, visit: Visit) -> TimeSpan:
        if self.trial.fault == "none":
            return visit.started_at_s, visit.ended_at_s
        failed = [span_of(call)[1] for call in self.requests(visit) if call.outcome != "ok"]
        return min(failed, default=visit.ended_at_s), visit.ended_at_s

    def blocked_s(self, node: str) -> float:
        """Seconds for which the event loop stood still while the node was at work."""
        return sum(
            length_s(within(self.seen.blocked, visit.started_at_s, visit.ended_at_s)) for visit in self.outermost(node)
        )

    def in_threads_s(self, node: str) -> float:
        """Seconds of the node's work that the event loop handed to threads."""
        return length_s(threads_of(self.measured)[node])

    def without_key(self, node: str) -> list[str]:
        """The nodes at and inside this one that were not given the key of the deadline."""
        visits = [visit for visit in self.seen.visits if visit.place.role == node and not visit.had_key]
        return list(dict.fromkeys(str(visit.place) for visit in visits))

    def mode(self, node: str) -> str:
        """What the node is under an event loop."""
        if self.blocked_s(node) > _NO_TIME_S:
            return "blocking async"
        if self.in_threads_s(node) > _NO_TIME_S:
            return "sync"
        spent_s = sum(visit.ended_at_s - visit.started_at_s for visit in self.outermost(node))
        return "async" if spent_s > _NO_TIME_S else "takes no time"


def sent_in(requests: Iterable[CallRecord], visit: Visit) -> list[CallRecord]:
    """Those of the requests that the visit sent."""
    role, position = visit.place.role, visit.place.position
    return [call for call in requests if call.role == role and call.step.rpartition(".")[0] == position]


def look(bench: TrialBench, alternative: str, question_id: str, *, fault: str = "none", key: str = "") -> Scene:
    """The scene of a run with an ample budget. key: that of the deadline, looked for in the inputs of nodes."""
    trial = Trial(alternative, AMPLE_S, question_id, fault)
    seen = Observation(key, tick_s=_TICK_S if fault == "none" else _TICK_OF_RETRIES_S)
    return Scene(trial, bench.measure(trial, seen_by=lambda inner: ObservedAlternative(inner, seen)), seen)
