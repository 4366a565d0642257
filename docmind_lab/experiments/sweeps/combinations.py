"""One combination of levels, and which runs it means."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.docmind.graphs.node_modes import NodeMode, checked_node_mode
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.measurement.run import RunOrder


@dataclass(frozen=True)
class Combination:
    """One level of each factor: a comparison of one alternative with nothing else."""

    comparison: Comparison

    @property
    def key(self) -> tuple[object, ...]:
        """The same for the same levels, whatever they were called: what the tables say of the runs."""
        # Of one run: the others have the same, but for their questions.
        facts = vars(dataclasses.replace(self.comparison, runs=1).orders()[0].facts)
        return tuple((name, value) for name, value in facts.items() if name not in ("study_id", "run_id"))

    @property
    def alternative(self) -> Alternative:
        """The alternative."""
        return self.comparison.alternatives[0]

    def orders(self, study_id: str, number: int, *, has_server_log: bool = True) -> list[RunOrder]:
        """The runs, repeat by repeat. number: of the combination in its study."""
        orders = self.comparison.orders_of(0, f"{study_id}-{number:04}", has_server_log=has_server_log)
        return [
            dataclasses.replace(order, facts=dataclasses.replace(order.facts, study_id=study_id)) for order in orders
        ]


@dataclass(frozen=True)
class Impossible:
    """A combination that cannot be, and why."""

    reason: str


def with_propagation(alternative: Alternative, level: bool | Literal["own"]) -> Alternative | Impossible:
    """The alternative with the deadline propagated or not."""
    if level == "own" or alternative.propagates == level:
        return alternative
    if not isinstance(alternative, Propagation):
        return Impossible(f"{alternative.name} with deadline_propagation={str(level).lower()}: it has no such option")
    dataclass_of_it: Any = alternative
    changed: Alternative = dataclasses.replace(dataclass_of_it, propagate=level)
    return changed


def with_node_mode(alternative: Alternative, level: str) -> NodeMode | Impossible:
    """The nodes that the system must have for the alternative to run over nodes of this mode."""
    if level in ("own", alternative.node_colour):
        return "own"
    if alternative.node_colour == "sync":
        return Impossible(f"{alternative.name} with node_colour={level}: it runs sync nodes")
    return checked_node_mode(level)
