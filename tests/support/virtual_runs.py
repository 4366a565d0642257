"""Whole runs of the lab's systems in virtual time: one system over the handbook for many of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.budgets import Budget
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.workload_by_name import workload_kind
from docmind_lab.tables.frames import to_frame

# The first question to DocMind takes 10.1 s when nothing goes wrong. At 8 s validation is under way until 8.966.
TIMEOUT_S, CALL_ENDS_S, ALL_ENDS_S = 8.0, 8.966, 10.117


@dataclass
class VirtualRuns:
    """Runs in virtual time, of the first question or of the one that is named. known: what was measured once."""

    system: SimulatedSystem
    known: dict[str, Any] = field(default_factory=dict)

    @classmethod
    @contextlib.contextmanager
    def of(cls, kind: str) -> Iterator[VirtualRuns]:
        """Of a kind of workload, on a system that is built here, which takes seconds, and closed behind the block."""
        with contextlib.closing(SimulatedSystem(Settings(), kind=kind)) as system:
            yield cls(system)

    def orders(
        self, alternatives: Sequence[Alternative], *faults: str, timeout_s: float = TIMEOUT_S, question: str = ""
    ) -> tuple[list[RunOrder], ServiceOptions]:
        """The order of one run under each alternative, and the services they are for."""
        options = ServiceOptions(LatencyProfile.named("typical"), tuple(Fault.parse(fault) for fault in faults))
        comparison = Comparison(
            decision_timeout_s=timeout_s,
            runs=len(workload_kind(self.system.kind).cases("handbook")) if question else 1,
            alternatives=tuple(alternatives),
            profile=options.profile,
            faults=options.faults,
            workload=self.system.kind,
        )
        return [order for order in comparison.orders() if question in ("", order.question.id)], options

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
        ((order,), options) = self.orders(parse_alternatives([alternative]), *faults, timeout_s=timeout_s)
        if budget is not None:
            order = replace(order, facts=replace(order.facts, budget=budget))
        return self.system.measure(order, replace(options, **services), node_mode=mode)

    def once(self, measure: Callable[..., Any], *asked: Any, **options: Any) -> Any:
        """What `measure` or `measure_each` gives; asked for again, it is not measured again."""
        key = repr((measure.__name__, asked, sorted(options.items())))
        if key not in self.known:
            self.known[key] = measure(*asked, **options)
        return self.known[key]

    def measure_each(
        self, alternatives: str, *faults: str, mode: NodeMode = "own", **asked: Any
    ) -> dict[str, MeasuredRun]:
        """Letter of each alternative → its run. asked: of `orders`."""
        orders, options = self.orders(parse_alternatives(alternatives), *faults, **asked)
        return {
            letter_of(order.alternative.name): self.system.measure(order, options, node_mode=mode) for order in orders
        }


def events_of(run: MeasuredRun, name: str) -> list[tuple[float, dict[str, Any]]]:
    """When each event of a name was recorded, and its detail."""
    return [(event.at_s, event.detail) for event in run.events if event.event == name]


def details(run: MeasuredRun, name: str) -> list[dict[str, Any]]:
    """The details of the events of a name."""
    return [detail for _, detail in events_of(run, name)]


def frames_of(runs: Sequence[MeasuredRun]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Events, runs and calls of some runs, as the tables of a workload take them."""
    return (
        to_frame("events", [event for run in runs for event in run.events]),
        to_frame("runs", [run.run for run in runs]),
        to_frame("calls", [call for run in runs for call in run.calls]),
    )
