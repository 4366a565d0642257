"""`timeouts`: every limit that a graph is under, what they come to by design, and what two faults show they come to.

    report = dl.timeouts(dl.graph("my_app:graph", ["Why?"]), decision_timeout_s=20)
    report.rows, report.inversions

One fault is a hang: no byte ever comes. The other is a trickle: a byte comes before each limit of one read is over, and
never the last one. Both strike every request of every node, in virtual time, with nothing that enforces a deadline.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pandas as pd

from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.numbers import require_seconds
from docmind_lab.core.progress import Progress, shows_progress
from docmind_lab.core.text import count_of, node_in_words
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.facts import Strike, strikes_of, struck
from docmind_lab.experiments.doctor.late_runs import TimeSpan, length_of, requests_of, span_of
from docmind_lab.experiments.doctor.limits_in_force import (
    Level,
    Limit,
    designed,
    in_sequence_s,
    limits_of_graph,
    limits_of_node,
)
from docmind_lab.experiments.doctor.probing import undisturbed
from docmind_lab.experiments.doctor.scenes import Scene
from docmind_lab.experiments.examination import Examined
from docmind_lab.experiments.world_options import World
from docmind_lab.findings.finding import Finding, MakesFinding
from docmind_lab.services.faults import LONGEST_S as LONGEST_TRICKLE_S
from docmind_lab.systems.own.references import AnyGraph
from docmind_lab.tables.records import CallRecord

# Between two pieces of a trickle where no read has a limit.
_GAP_S = 60.0
_LONGEST_NAME: Final = 19
_LEGEND: Final = (
    "Seconds. designed: what limits, tries and waits come to if nothing is answered. hang, trickle: measured with no "
    f"byte ever, and with bytes without end. no end: not within a day, or {LONGEST_TRICKLE_S:,.0f} s of a trickle; a "
    "graph that runs async only is watched for a fifth of a day."
)

_Fault = Literal["hang", "trickle"]
_FAULTS: Final[tuple[_Fault, ...]] = ("hang", "trickle")
_Client = tuple[Limit, ...]
"""The limits of one client, each with its node and what it asks; none for what is no client."""
_Waits = dict[tuple[_Fault, Level, str, _Client], tuple[float, int]]
"""Seconds and requests of what waited longest, by fault, level, node and client."""


@dataclass(frozen=True, repr=False)
class TimeoutReport(MakesFinding):
    """Every limit that a graph is under.

    Args:
        graph: Its name.
        rows: From the outside in: the run, then each node with its clients.
        inversions: Limits that last longer than one around them, a sentence each.
        made_up: How many kinds of requests got a made-up answer, since no simulated service answers them.
    """

    graph: str
    rows: tuple[Limit, ...]
    inversions: tuple[str, ...]
    made_up: int = 0

    def finding(self) -> Finding:
        """Return the inversions, and a table of the limits."""
        count = count_of(len(self.inversions), "inversion") if self.inversions else "no inversion"
        requests = count_of(self.made_up, "request")
        answers = f"Made-up answers were given to {requests} that no simulated service answers."
        return Finding(
            (
                f"The limits in force in {self.graph}, from the outside in: {count}.",
                self.inversions,
                *([answers] if self.made_up else []),
                self.table(),
                _LEGEND,
            ),
            {"graph": self.graph, "inversions": list(self.inversions)},
            {"limits": self.frame()},
        )

    def frame(self) -> pd.DataFrame:
        """Return a row for each limit: the fields of `Limit`."""
        return pd.DataFrame([dataclasses.asdict(row) for row in self.rows])

    def table(self) -> pd.DataFrame:
        """Return the rows as text, in 80 columns."""
        return pd.DataFrame([_in_words(row) for row in self.rows])


def _in_words(row: Limit) -> dict[str, str]:
    name = f"node {row.node}" if row.node and not row.address else row.who
    short = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return {
        "of": f"  {short}" if row.address else short,
        "bounds": row.level,
        "limit": "none" if math.isinf(row.seconds) else f"{row.seconds:g}",
        "tries": "no end" if math.isinf(row.waits_s) else str(row.tries) if row.tries > 1 else "",
        "designed": _in_seconds(row.designed_s),
        "hang": _in_seconds(row.hang_s),
        "sent": str(row.hang_requests or ""),
        "trickle": _in_seconds(row.trickle_s),
    }


def _in_seconds(value: float) -> str:
    return "" if math.isnan(value) else "no end" if math.isinf(value) else f"{value:,.1f}"


@answers_wrong_names
@shows_progress("runs")
def timeouts(
    system: Any,
    decision_timeout_s: float | None = None,
    *,
    world: World | None = None,
    seed: int = 7,
    progress: Progress | None = None,
) -> TimeoutReport:
    """Report every limit that a graph is under, and how long it really waits for what never answers.

    Timeouts are observed at the network seam. Tries are read from the clients that send, and from the graph; what they
    come to is measured. Nothing enforces a deadline meanwhile.

    Args:
        system: A graph or an agent with its inputs: dl.graph(…) or dl.agent(…), or a graph or a reference to one.
        decision_timeout_s: The limit of one run, in seconds, to hold the others against; None for none.
        world: Latencies of the simulated services, by the name of a profile, and endpoints of other services.
        seed: Keys every draw of the simulated services.
        progress: Called with (done, all) runs. None draws a bar, from 2 s on.

    Raises:
        ConfigurationError: A value cannot be used.
        NotSimulated: The graph leaves virtual time.
        GraphError: The graph fails without any fault.
    """
    if decision_timeout_s is not None:
        require_seconds("decision timeout", decision_timeout_s)
    examined = Examined.of(system, world)
    bench = TrialBench(examined, seed)
    try:
        # Sync, or async if the graph fails sync.
        scenes = [next(undisturbed(bench, question.id, {})) for question in bench.questions()]
        # What is asked outside every node comes first.
        outside = [""] if any(scene.seen.sent.get("") for scene in scenes) else []
        names = dict.fromkeys([*outside, *(name for scene in scenes for name in scene.nodes())])
        nodes = [_Node.of(name, scenes) for name in names]
        trials = [(node, strike, fault) for node in nodes for strike in node.strikes for fault in _FAULTS]
        waits: _Waits = {}
        for done, (node, strike, fault) in enumerate(trials, 1):
            node.strike(bench, strike, fault, waits)
            if progress is not None:
                progress(done, len(trials))
        chains = [*_chains(bench.graph, scenes, nodes, decision_timeout_s)]
        return TimeoutReport(examined.called, tuple(_rows(chains, waits)), _inversions(chains), len(bench.unanswered))
    finally:
        bench.close()


def _client_of(scene: Scene, call_id: str, node: str, address: str) -> _Client:
    """Return the limits of the client that sent a call; none where they were not observed."""
    return tuple(replace(limit, node=node, address=address) for limit in scene.seen.clients.get(call_id, ()))


@dataclass(frozen=True)
class _Node:
    """One outermost node, or what is outside every node, whose name is empty.

    scenes: the undisturbed run of each input. clients: of all that it asks, in any of them. strikes: what strikes its
    requests, all of a kind together and each by itself.
    """

    name: str
    scenes: dict[str, Scene]
    clients: tuple[_Client, ...]
    strikes: list[Strike]

    @classmethod
    def of(cls, name: str, scenes: list[Scene]) -> _Node:
        asked = [
            _client_of(scene, one.call_id, name, one.address)
            for scene in scenes
            for one in scene.seen.sent.get(name, {}).values()
        ]
        by_input = {scene.trial.question_id: scene for scene in scenes}
        return cls(name, by_input, tuple(dict.fromkeys(filter(None, asked))), strikes_of(scenes, name))

    def strike(self, bench: TrialBench, strike: Strike, fault: _Fault, waits: _Waits) -> None:
        """Measure a run whose requests hang or trickle, and note what waited longer than in those before."""
        reads_s = [limit.seconds for limits in self.clients for limit in limits if limit.level == "read"]
        text = strike.fault("hang") if fault == "hang" else strike.fault("endless", min([_GAP_S, *reads_s]) / 2)
        scene = struck(bench, self.scenes[strike.question_id], text)
        for level, client, calls, (from_s, to_s) in self._under_way(strike, scene):
            went_on = fault == "trickle" and any(length_of(span_of(call)) >= LONGEST_TRICKLE_S for call in calls)
            wait = to_s - from_s if to_s < scene.watched_s and not went_on else math.inf, len(calls)
            key = fault, level, "" if level in ("run", "step") else self.name, client
            waits[key] = max(wait, waits.get(key, wait))

    def _under_way(self, strike: Strike, scene: Scene) -> Iterator[tuple[Level, _Client, list[CallRecord], TimeSpan]]:
        """Yield what waited in a run under a fault, from the outside in, with its client, its requests, and when."""
        requests = [call for call in requests_of(scene.measured) if call.role == self.name]
        returned_s = scene.measured.run.returned_at_s
        yield "run", (), requests, (0.0, math.inf if math.isnan(returned_s) else returned_s)
        if not self.name:
            # The calls of no visit: each is told by what it was sent to.
            for one in scene.seen.sent.get("", {}).values():
                client = _client_of(scene, one.call_id, "", one.address)
                for call in requests:
                    if call.call_id == one.call_id and call.outcome != "ok":
                        yield "try", client, [call], span_of(call)
                        yield "read", client, [call], span_of(call)
            return
        for visit in scene.outermost(self.name):
            if calls := scene.requests(visit):
                yield "step", (), calls, (visit.started_at_s, visit.ended_at_s)
                yield "node", (), calls, (visit.started_at_s, visit.ended_at_s)
        # What strikes several requests together does not say how long each of them lasts.
        is_one = strike.role != self.name or sum(each.of_store == strike.of_store for each in self.strikes) == 1
        for visit in scene.tries(self.name):
            within = [call for call in requests if visit.started_at_s <= call.started_at_s <= visit.ended_at_s]
            yield "idle node", (), within, (visit.started_at_s, visit.ended_at_s)
            calls = [call for call in within if call.outcome != "ok"] if is_one else []
            client = _client_of(scene, calls[0].call_id, self.name, strike.address) if calls else ()
            for call in calls[:1]:
                yield "call", client, calls, (call.started_at_s, max(span_of(each)[1] for each in calls))
            for call in calls:
                yield "try", client, [call], span_of(call)
                yield "read", client, [call], span_of(call)


def _chains(
    graph: AnyGraph, scenes: list[Scene], nodes: list[_Node], decision_timeout_s: float | None
) -> Iterator[tuple[Limit, ...]]:
    """Yield the limits around each call of a node, from the run to a read, with what each comes to by design."""
    whole, *step = limits_of_graph(graph, decision_timeout_s)
    around: dict[str, tuple[Limit, ...]] = {
        node.name: designed((*step, *limits_of_node(graph, node.name)), _inside_s(scenes, node.name))
        for node in nodes
        if node.name
    }
    runs_s = [
        in_sequence_s(
            ((visit.started_at_s, visit.ended_at_s), around[visit.place.role][0].designed_s)
            for visit in scene.outermost()
        )
        for scene in scenes
    ]
    outside_s = [
        _in_calls_s(scene, [call for call in requests_of(scene.measured) if not call.role]) for scene in scenes
    ]
    run = designed([whole], max(runs_s + outside_s))
    yield run
    for node in nodes:
        of_node = around.get(node.name, ())
        if node.clients or any(math.isfinite(limit.seconds) or limit.tries > 1 for limit in of_node):
            for client in node.clients or [()]:
                yield (*run, *of_node, *client)


def _inside_s(scenes: list[Scene], node: str) -> float:
    """Return what the limits of the calls of a node come to in its longest visit, in seconds."""
    return max(_in_calls_s(scene, scene.requests(visit)) for scene in scenes for visit in scene.outermost(node))


def _in_calls_s(scene: Scene, requests: Sequence[CallRecord]) -> float:
    """Return what the limits of calls come to, in seconds."""
    clients = scene.seen.clients
    spans = {call.call_id: span_of(call) for call in requests if call.call_id in clients}
    return in_sequence_s((span, clients[call_id][0].designed_s) for call_id, span in spans.items())


def _rows(chains: Sequence[Sequence[Limit]], waits: _Waits) -> Iterator[Limit]:
    """Yield each limit once, with what it came to at most by design and under both faults."""
    limits: dict[tuple[Level, str, _Client, str], Limit] = {}
    for chain in chains:
        client = tuple(limit for limit in chain if limit.address)
        for limit in chain:
            # A client may have two layers of retries around each other.
            key = limit.level, limit.node, client if limit.address else (), str(limit) if limit.address else ""
            limits[key] = max(limit, limits.get(key, limit), key=lambda each: each.designed_s)
    for (level, node, client, _), limit in limits.items():
        (hang_s, hang_requests), (trickle_s, _) = (
            waits.get((fault, level, node, client), (math.nan, 0)) for fault in _FAULTS
        )
        yield replace(limit, hang_s=hang_s, hang_requests=hang_requests, trickle_s=trickle_s)


def _inversions(chains: Sequence[Sequence[Limit]]) -> tuple[str, ...]:
    """Return a sentence for each limit that lasts longer than one around it; of a node, where none of its clients'."""
    found = [each for chain in chains if (each := _inversion(chain)) is not None]
    of_clients = {inner.node for inner, _ in found if inner.address}
    return tuple(dict.fromkeys(text for inner, text in found if inner.address or inner.node not in of_clients))


def _inversion(chain: Sequence[Limit]) -> tuple[Limit, str] | None:
    """Return a limit that lasts longer than one around it, with a sentence: one of a client, or else of the graph."""
    nested = [limit for limit in chain if not limit.is_beside]
    for place, inner in sorted(enumerate(nested), key=lambda each: not each[1].address):
        outer = min(nested[:place], key=lambda limit: limit.seconds, default=Limit("run", "run"))
        if outer.seconds <= inner.seconds < math.inf:
            one_s = inner.seconds
        elif outer.seconds < inner.designed_s < math.inf:
            one_s = (inner.designed_s - inner.waits_s) / inner.tries
        else:
            continue
        of = f" of {inner.who}" if inner.address else ""
        who = inner.who if inner.level in ("call", "retry") else f"the {inner.level}{of}"
        beyond = "Outside every node" if inner.address else "In the graph"
        where = f"In {node_in_words(inner.node)}" if inner.node else beyond
        times = f" × {inner.tries}" if inner.tries > 1 else ""
        said = f"{where}, {who} gives up after {one_s:g} s{times}, the {outer.level} after {outer.seconds:g} s."
        return inner, said
    return None
