"""Runs of graphs that were not made for the lab, in virtual time and on the wall clock."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from langgraph.graph import START, StateGraph
from served_here import Here
from typing_extensions import TypedDict

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, measure
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.own import OwnGraph, own_graph
from docmind_lab.systems.workload_by_name import workload_kind

with warnings.catch_warnings():
    # The package still takes an older way to make agents from LangGraph.
    warnings.simplefilter("ignore")
    import graphs_supervisor

QUESTION = "What does a with statement do?"
GRAPHS: dict[str, Any] = {
    f"{graphs_supervisor.__name__}:team": QUESTION,
    "graphs_agent:make": QUESTION,
    "graphs_mixed:make": {"question": QUESTION},
}
EVERY = "unguarded,A,B,C,D,E,F"
ASKED: dict[str, Any] = {"question": "a"}


class State(TypedDict, total=False):
    """What the nodes of a graph share."""

    question: str
    answer: Any
    seen: list[Any]


def graph_of(
    *nodes: Any, schema: Any = State, context: Any = None, compiled: Mapping[str, Any] | None = None, **named: Any
) -> Any:
    """A graph whose nodes follow each other: functions under their own names, and others under those given.

    compiled: options with which it is compiled.
    """
    builder = StateGraph(schema, context_schema=context)
    builder.add_sequence([*((node.__name__, node) for node in nodes), *named.items()])
    return builder.add_edge(START, next(iter(builder.nodes))).compile(**compiled or {})


def _asked(graph: Any, given: Any) -> Any:
    if given is None and isinstance(graph, str):
        return GRAPHS.get(graph, QUESTION)
    return ASKED if given is None and "question" in getattr(graph, "channels", ()) else given or QUESTION


def _comparison(own: OwnGraph, alternatives: str, decision_timeout_s: float, **how: Any) -> Comparison:
    return Comparison(
        decision_timeout_s=decision_timeout_s,
        runs=1,
        alternatives=parse_alternatives(alternatives, None, budgeted_retries=1),
        workload=own.workload,
        documents=Documents(own.corpus),
        **how,
    )


def simulated(
    graph: Any,
    *,
    alternatives: str = "A",
    decision_timeout_s: float = 20.0,
    faults: str = "none",
    given: Any = None,
    profile: str = "typical",
    seed: int = 7,
    **options: Any,
) -> list[MeasuredRun]:
    """One run under each alternative in virtual time, in this process, in the order of the alternatives."""
    own = own_graph(graph, [_asked(graph, given)], **options)
    latencies = LatencyProfile.named(profile)
    comparison = _comparison(own, alternatives, decision_timeout_s, seed=seed, profile=latencies)
    system = SimulatedSystem(Settings(), kind=own.workload, corpus=own.corpus)
    struck = (Fault.parse(faults),)
    services = ServiceOptions(latencies, struck, seed=seed, endpoints=comparison.kind.endpoints)
    try:
        orders = {order.facts.run_id: order for order in comparison.orders()}
        return [system.measure(orders[run_id], services) for run_id in sorted(orders)]
    finally:
        system.close()


def services(*faults: str) -> contextlib.closing[Here]:
    """Simulated services over sockets, in this process, until the end of a block."""
    return contextlib.closing(Here.of(*faults, profile="typical/6"))


def measured_on_the_wall(
    here: Here,
    graph: Any,
    alternatives: str,
    decision_timeout_s: float,
    *,
    side_by_side: int = 1,
    given: Any = None,
    **options: Any,
) -> list[MeasuredRun]:
    """One run under each alternative on the wall clock, in the order of the comparison."""
    own = own_graph(graph, [_asked(graph, given)], **options)
    comparison = _comparison(own, alternatives, decision_timeout_s, clock="wall")
    kind = workload_kind(own.workload)
    workload = kind.build(Surroundings(here.addresses, Settings()))
    try:
        with ThreadPoolExecutor(side_by_side) as pool:
            orders = comparison.orders(has_server_log=kind.has_server_log)
            return list(pool.map(lambda order: measure(order, workload, here.log), orders))
    finally:
        workload.close()
