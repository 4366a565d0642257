"""Whole runs in virtual time for the tests of the alternatives: one system over the handbook for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.budgets import Budget
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents.library import named_corpus
from docmind_lab.systems.base.node_modes import NodeMode

# The first question takes 10.1 s when nothing goes wrong. At 8 s validation is under way until 8.966.
TIMEOUT_S, CALL_ENDS_S, ALL_ENDS_S = 8.0, 8.966, 10.117


@dataclass
class VirtualRuns:
    """Runs of the first question in virtual time."""

    system: SimulatedSystem

    @classmethod
    def over_the_handbook(cls) -> VirtualRuns:
        """On a system that is built here, which takes seconds."""
        return cls(SimulatedSystem(Settings(), corpus=named_corpus("handbook")))

    def order(
        self, alternative: Alternative, *faults: str, timeout_s: float = TIMEOUT_S
    ) -> tuple[RunOrder, ServiceOptions]:
        """The order of one run, and the services it is for."""
        options = ServiceOptions(LatencyProfile.named("typical"), tuple(Fault.parse(fault) for fault in faults))
        comparison = Comparison(
            decision_timeout_s=timeout_s,
            runs=1,
            alternatives=(alternative,),
            profile=options.profile,
            faults=options.faults,
            documents=Documents("handbook"),
        )
        (order,) = comparison.orders()
        return order, options

    def measure(
        self,
        alternative: str | Alternative,
        *faults: str,
        mode: NodeMode = "own",
        timeout_s: float = TIMEOUT_S,
        budget: Budget | None = None,
        **services: Any,
    ) -> MeasuredRun:
        """One run under an alternative, or its name such as "B:propagate". services: fields of `ServiceOptions`."""
        (made,) = parse_alternatives([alternative])
        order, options = self.order(made, *faults, timeout_s=timeout_s)
        if budget is not None:
            order = replace(order, facts=replace(order.facts, budget=budget))
        return self.system.measure(order, replace(options, **services), node_mode=mode)
