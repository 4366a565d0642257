"""Runs of graphs that were not made for the lab, in virtual time."""

from __future__ import annotations

import warnings
from typing import Any

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.workloads.own import own_graph

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


def simulated(
    graph: Any,
    *,
    alternatives: str,
    decision_timeout_s: float,
    faults: str = "none",
    given: Any = None,
    profile: str = "typical",
    seed: int = 7,
    **options: Any,
) -> list[MeasuredRun]:
    """One run under each alternative in virtual time, in this process, in the order of the alternatives."""
    asked = GRAPHS.get(graph, QUESTION) if isinstance(graph, str) and given is None else given or QUESTION
    own = own_graph(graph, [asked], **options)
    comparison = Comparison(
        decision_timeout_s=decision_timeout_s,
        runs=1,
        seed=seed,
        alternatives=parse_alternatives(alternatives, None, budgeted_retries=1),
        profile=LatencyProfile.named(profile),
        workload=own.workload,
        corpus=own.corpus,
    )
    system = SimulatedSystem(Settings(), kind=own.workload, corpus=own.corpus)
    services = ServiceOptions(profile=comparison.profile, faults=(Fault.parse(faults),), seed=seed)
    try:
        orders = {order.facts.run_id: order for order in comparison.orders()}
        return [system.measure(orders[run_id], services) for run_id in sorted(orders)]
    finally:
        system.close()
