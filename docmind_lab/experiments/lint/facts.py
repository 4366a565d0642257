"""Facts about each node: its mode, its calls, the timeouts and retries in force, and its worst case."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass

from docmind_lab.experiments.lint.overruns import requests_of
from docmind_lab.experiments.lint.probe import UNTIMED, Scene, sent_in
from docmind_lab.experiments.lint.trials import Trial, TrialBench
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR

# A call that has not given up after a day counts as endless.
LONGEST_S = 86_400.0
SLOWEST_GAP_S = 3600.0
"""The slowest trickle of a simulated service: seconds between two pieces."""


@dataclass(frozen=True)
class WorstCase:
    """How long one visit of a node takes when the service never answers it.

    requests: sent one after the other or side by side. timeouts_s: that they ran into, added up; pauses_s: everything
    else. took_s: infinite if it went on for longer than a day.
    """

    run_id: str
    command: str
    requests: int
    timeouts_s: float
    took_s: float

    @property
    def pauses_s(self) -> float:
        """Seconds of the visit without a request under way."""
        return self.took_s - self.timeouts_s

    def __str__(self) -> str:
        if math.isinf(self.took_s):
            return "no end: nothing limits a call that is never answered"
        tries = f"{self.requests} request{'s' if self.requests != 1 else ''}"
        return f"{self.took_s:,.1f} s: {tries}, {self.timeouts_s:,.1f} s of timeouts, {self.pauses_s:,.1f} s of waits"


@dataclass(frozen=True)
class RetryFacts:
    """How many requests one visit of a node sends when all goes well, and when every request fails at once.

    of_one_call: that the client made of one call by itself.
    """

    run_id: str
    command: str
    well: int
    failing: int
    of_one_call: int


@dataclass(frozen=True)
class TrickledCall:
    """A call that outlived its timeout because its body came in pieces. Times in seconds."""

    run_id: str
    command: str
    call_id: str
    timeout_s: float
    took_s: float


@dataclass(frozen=True)
class NodeFacts:
    """What the lint knows of one node of the outermost graph.

    mode: sync, async, blocking async, or that it takes no time, as an event loop saw it. calls: kind → how many in
    one run. timeouts_s: of its requests, each of one read; empty where there is none. capped: how many
    requests of how many the deadline reached where it travels with the run. code_s: the longest stretch
    without a request under way, which no deadline cuts in sync code. has_key: whether each visit of the node, and of
    those inside, was given the key of the deadline; None for a graph that is not asked to have one.
    """

    node: str
    mode: str
    calls: dict[str, int]
    timeouts_s: tuple[float, ...]
    capped: tuple[int, int]
    code_s: float
    retries: RetryFacts | None
    worst_case: WorstCase | None
    trickled: TrickledCall | None
    has_key: bool | None


def calls_in(scene: Scene, node: str) -> dict[str, int]:
    """Count the node's calls by kind."""
    of_node = {
        (call.call_id, call.kind)
        for call in scene.measured.calls
        if call.role == node and call.seen_from == "client" and call.outcome != "refused"
    }
    return dict(sorted(Counter(kind for _, kind in of_node).items()))


def timeouts_of(scene: Scene, node: str) -> tuple[float, ...]:
    """Return the timeouts that the node's own clients set on its requests."""
    given = {call.timeout_s for call in requests_of(scene.measured) if call.role == node}
    return tuple(sorted(float(timeout_s) for timeout_s in given if not math.isnan(timeout_s)))


def faults_of(scene: Scene, node: str) -> list[tuple[str, str]]:
    """Return pairs of faults for the node's requests (no answer, failure at once), for models, then for searches."""
    kinds = {call.kind for call in requests_of(scene.measured) if call.role == node}
    known = {"llm": ("hang", "http_500"), "retrieval": ("retrieval_hang", "retrieval_503")}
    return [faults for kind, faults in known.items() if kind in kinds]


def capped_in(scene: Scene, node: str) -> tuple[int, int]:
    """Return how many of the node's requests carried the deadline that the run propagates, and how many there were."""
    sent = {(call.call_id, call.attempt) for call in requests_of(scene.measured) if call.role == node}
    details = [json.loads(event.detail) for event in scene.measured.events if event.event == "attempt_started"]
    capped = [one for one in details if (one["call_id"], one["attempt"]) in sent and one["capped"]]
    return len(capped), len(sent)


def retries_of(bench: TrialBench, well: Scene, failing: Scene, node: str) -> RetryFacts:
    """Return how many requests the node's retries add."""

    def most(scene: Scene) -> int:
        return max((len(scene.requests(visit)) for visit in scene.outermost(node)), default=0)

    by_client = max((call.attempt for call in requests_of(failing.measured) if call.role == node), default=0)
    run_id, command = failing.measured.run.run_id, bench.command(failing.trial)
    return RetryFacts(run_id, command, most(well), most(failing), by_client)


def worst_case_of(bench: TrialBench, like: Scene, node: str, fault: str) -> WorstCase:
    """Measure a visit of the node whose service never answers, until the visit ends or a day has passed."""
    trial = Trial(like.trial.alternative, LONGEST_S / HORIZON_FACTOR, like.trial.question_id, f"{fault}:{node}")
    measured = bench.measure(trial)
    first = like.outermost(node)[0]
    requests = sent_in(requests_of(measured), first)
    ended = [
        event.at_s
        for event in measured.events
        if event.event == "node_ended" and event.role == node and "/" not in json.loads(event.detail)["node"]
        # A graph may be slower before the node than it was; an earlier end belongs to another visit.
        if event.at_s >= first.started_at_s
    ]
    # Branches begin together, and the first of them to end has met the whole of it.
    took_s = min(ended) - first.started_at_s if ended else math.inf
    # What the alternative itself ended at the deadline of the trial has no end of its own.
    if measured.run.alternative != UNTIMED and ended and min(ended) >= trial.decision_timeout_s:
        took_s = math.inf
    timed_out_s = sum(call.latency_s for call in requests if not math.isnan(call.latency_s))
    return WorstCase(measured.run.run_id, bench.command(trial), len(requests), timed_out_s, took_s)


def trickled_of(bench: TrialBench, like: Scene, node: str, timeout_s: float) -> TrickledCall | None:
    """Return a call that outlived its client's timeout as its body came in pieces; None if the call was cut."""
    gap_s = min(timeout_s / 2, SLOWEST_GAP_S)
    fault = f"trickle={gap_s!r}:{node}"
    trial = Trial(like.trial.alternative, LONGEST_S / HORIZON_FACTOR, like.trial.question_id, fault)
    measured = bench.measure(trial)
    held = [
        call
        for call in requests_of(measured)
        if call.role == node and call.outcome == "ok" and call.latency_s > call.timeout_s
    ]
    if not held:
        return None
    longest = max(held, key=lambda call: call.latency_s)
    return TrickledCall(
        measured.run.run_id, bench.command(trial), longest.call_id, longest.timeout_s, longest.latency_s
    )
