"""Facts about each node: its mode, its calls, the timeouts and retries in force, and its worst case."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from docmind_lab.core.text import count_of
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.late_runs import length_of, length_s, requests_of, span_of, within
from docmind_lab.experiments.doctor.scenes import Scene, observe_run, sent_in
from docmind_lab.experiments.measurement.derive import HORIZON_FACTOR

# A call that has not given up after a day counts as endless. A run is observed for longer than its budget.
BUDGET_S = 86_400.0 / HORIZON_FACTOR
# What is longer by less is the sum of floating point numbers.
_NO_TIME_S = 1e-6
SLOWEST_GAP_S = 3600.0
"""The slowest trickle of a simulated service: seconds between two pieces."""


@dataclass(frozen=True)
class WorstCase:
    """How long one visit of a node takes when the service never answers it: the longest, where there are several.

    requests: sent in the visit. side_by_side: whether any of them were under way together. timeouts_s: for how long at
    least one was under way; pauses_s: everything else. took_s: infinite if it went on for longer than a day. addresses:
    of the requests of all visits that were never answered.
    """

    run_id: str
    command: str
    requests: int
    side_by_side: bool
    timeouts_s: float
    took_s: float
    addresses: tuple[str, ...] = ()

    @property
    def pauses_s(self) -> float:
        """Seconds of the visit without a request under way."""
        return self.took_s - self.timeouts_s

    def __str__(self) -> str:
        if math.isinf(self.took_s):
            return "no end: nothing limits a call that is never answered"
        tries = count_of(self.requests, "request") + (" side by side" if self.side_by_side else "")
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

    mode: sync, async, sync inside (async, with sync code in threads), blocking async, or that it takes no time, as an
    event loop saw it; "not seen" where the runs under one did not come to it, "sync only" where there were none. calls:
    kind → how many in one run. timeouts_s: of its requests, each of one read; empty where there is none. capped: how
    many requests of how many the deadline reached where it travels with the run. code_s: the longest stretch without a
    request under way, which no deadline cuts in sync code. has_key: whether each visit of the node, and of those
    inside, was given the key of the deadline; None for a graph that is not asked to have one.
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
    timeouts_s = {call.timeout_s for call in requests_of(scene.measured) if call.role == node}
    return tuple(sorted(float(timeout_s) for timeout_s in timeouts_s if not math.isnan(timeout_s)))


@dataclass(frozen=True)
class Strike:
    """Faults that strike the requests of a node, or one of them, with the input that it sends them for.

    address: of the only request that is struck; of the first where all are. at_s: when it is sent if nothing strikes
    it, in seconds since the run's start. after: the fault that leads to the node; "none" where the input alone does.
    """

    question_id: str
    role: str
    address: str
    of_store: bool
    at_s: float
    after: str = "none"

    def fault(self, kind: Literal["hang", "fail", "trickle", "endless"], gap_s: float | None = None) -> str:
        """Return the fault under which the requests are never answered, fail at once, or are answered in pieces.

        gap_s: seconds between two pieces; a trickle has a last one, and an endless answer has none.
        """
        name = f"retrieval_{kind}" if self.of_store else kind
        if kind == "fail":
            name = "retrieval_503" if self.of_store else "http_500"
        gap = "" if gap_s is None else f"={gap_s!r}"
        before = "" if self.after == "none" else f"{self.after} + "
        return f"{before}{name}{gap}:{self.role}"


def strikes_of(scenes: Iterable[Scene], node: str) -> list[Strike]:
    """Return what strikes each request of a node: all of a kind together, then each that has others beside it.

    Requests come from all scenes; one that several inputs lead to, from a client with the same limits, is struck with
    the first of them. A request outside every node is struck by what strikes all.
    """
    strikes: dict[tuple[Any, int], tuple[int, Strike]] = {}
    for scene in scenes:
        asked: Counter[Any] = Counter()
        for number, request in scene.seen.sent.get(node, {}).items():
            of_store = request.kind == "retrieval"
            asked_in, after = scene.trial.question_id, scene.trial.fault
            strike = Strike(asked_in, node or "*", request.address, of_store, request.at_s, after)
            one = request.address, scene.seen.clients.get(request.call_id)
            strikes.setdefault((one, asked[one]), (number, strike))
            asked[one] += 1
    made: list[Strike] = []
    # A node that asks a model and a store is described by its model.
    for of_store in (False, True):
        of_kind = [(number, strike) for number, strike in strikes.values() if strike.of_store == of_store]
        in_runs: dict[tuple[str, str], list[Strike]] = {}
        for _, strike in of_kind:
            in_runs.setdefault((strike.question_id, strike.after), []).append(strike)
        made += [of_run[0] for place, of_run in enumerate(in_runs.values()) if place == 0 or len(of_run) > 1]
        if node and len(of_kind) > 1:
            made += [dataclasses.replace(strike, role=f"{node}#{number}") for number, strike in of_kind]
    return made


def capped_in(scene: Scene, node: str) -> tuple[int, int]:
    """Return how many of the node's requests carried the deadline that the run propagates, and how many there were."""
    sent = {(call.call_id, call.attempt) for call in requests_of(scene.measured) if call.role == node}
    details = [event.detail for event in scene.measured.events if event.event == "attempt_started"]
    capped = [one for one in details if (one["call_id"], one["attempt"]) in sent and one["capped"]]
    return len(capped), len(sent)


def retries_of(bench: TrialBench, well: Scene, failing: Scene, node: str) -> RetryFacts | None:
    """Return how many requests the node's retries add; None if the failing run did not come to it."""
    if not failing.outermost(node):
        return None

    def most(scene: Scene) -> int:
        return max((len(scene.requests(visit)) for visit in scene.outermost(node)), default=0)

    by_client = max((call.attempt for call in requests_of(failing.measured) if call.role == node), default=0)
    run_id, command = failing.measured.run.run_id, bench.command(failing.trial)
    return RetryFacts(run_id, command, most(well), most(failing), by_client)


def struck(bench: TrialBench, like: Scene, fault: str) -> Scene:
    """Run the input of a scene under a fault, and observe the run for a day. It ends by itself or not at all."""
    return observe_run(bench, like.trial.alternative, like.trial.question_id, fault=fault, budget_s=BUDGET_S)


def worst_case_of(bench: TrialBench, like: Scene, node: str, fault: str) -> WorstCase | None:
    """Measure a visit of the node whose service never answers it, until the visit ends or a day has passed.

    Returns None if no request of the node was left without an answer.
    """
    hung = struck(bench, like, fault)
    unanswered = [call for call in requests_of(hung.measured) if call.role == node and math.isnan(call.first_byte_at_s)]
    visits = [visit for visit in hung.outermost(node) if sent_in(unanswered, visit)]
    if not unanswered:
        return None
    visit = max(visits, key=lambda each: each.ended_at_s - each.started_at_s, default=None)
    requests = unanswered if visit is None else sent_in(requests_of(hung.measured), visit)
    started_at_s, ended_at_s = (0.0, math.inf) if visit is None else (visit.started_at_s, visit.ended_at_s)
    call_ids = {call.call_id for call in unanswered}
    spans = [span_of(call) for call in requests]
    waited_s = length_s(within(spans, started_at_s, ended_at_s))
    took_s = ended_at_s - started_at_s if ended_at_s < hung.watched_s else math.inf
    return WorstCase(
        run_id=hung.measured.run.run_id,
        command=bench.command(hung.trial),
        requests=len(requests),
        side_by_side=sum(map(length_of, spans)) > length_s(spans) + _NO_TIME_S,
        timeouts_s=waited_s,
        took_s=took_s,
        addresses=tuple(one.address for one in hung.seen.sent.get(node, {}).values() if one.call_id in call_ids),
    )


def trickled_of(bench: TrialBench, like: Scene, node: str, strike: Strike, timeout_s: float) -> TrickledCall | None:
    """Return a call that outlived its client's timeout as its body came in pieces; None if the call was cut."""
    scene = struck(bench, like, strike.fault("trickle", min(timeout_s / 2, SLOWEST_GAP_S)))
    of_node = (call for call in requests_of(scene.measured) if call.role == node and call.outcome == "ok")
    held = [call for call in of_node if call.latency_s > call.timeout_s]
    if not held:
        return None
    longest = max(held, key=lambda call: call.latency_s)
    run_id, command = scene.measured.run.run_id, bench.command(scene.trial)
    return TrickledCall(run_id, command, longest.call_id, longest.timeout_s, longest.latency_s)
