"""The design of a load study on traces: every combination of what is varied, and the crowds that follow."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.comparison.design import study_id_of
from docmind_lab.experiments.load.arrivals import Arrivals, as_json
from docmind_lab.experiments.load.design import CrowdsDesign, replicate_seed, require_count
from docmind_lab.experiments.load.on_traces.server import require_policy
from docmind_lab.experiments.load.on_traces.shapes import Recorded
from docmind_lab.experiments.measurement.derive import horizon_of
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Pace
from docmind_lab.tables.traces.rules import NamedRule

# Beyond that, the arrays of one crowd no longer fit beside each other in a worker.
_MOST_QUERIES: Final = 1_000_000


@dataclass(frozen=True)
class TracedLoadDesign(CrowdsDesign):
    """What a load study on traces runs; the fields are the parameters of `load_on_traces`.

    Raises: ConfigurationError for a value that cannot be used, by name.
    """

    recorded: Recorded
    rules: tuple[NamedRule, ...]
    decision_timeouts_s: tuple[float, ...]
    slots: tuple[int | None, ...]
    queue_policies: tuple[str, ...]
    behaviour: ServerBehaviour
    brownout: Fault | None = None

    def __post_init__(self) -> None:
        for name, values in (
            ("decision_timeout_s", self.decision_timeouts_s),
            ("slots", self.slots),
            ("queue_policy", self.queue_policies),
        ):
            if not values or len(set(values)) < len(values):
                raise ConfigurationError(f"{name} must have one or more values, each once, not {list(values)}")
        self.require_crowds(self.decision_timeouts_s, _MOST_QUERIES)
        for count in self.slots:
            if count is not None:
                require_count("slots", count, 1, 1_000_000)
        for policy in self.queue_policies:
            require_policy(policy)
        fault = self.brownout
        if fault is not None and (fault.kind != "brownout" or fault.role != "*" or fault.probability != 1):
            raise ConfigurationError(
                f"brownout: {fault} is more than a trace can say of; write brownout=FACTOR@START-END, or use run_load"
            )

    def design(self) -> dict[str, Any]:
        """Return everything that determines the queries but the traces, as JSON."""
        return {
            "recorded_runs": len(self.recorded.shapes),
            "in_order": self.recorded.in_order,
            "arrivals": [as_json(each) for each in self.arrivals],
            "alternatives": [{"name": each.alternative, "options": json.loads(each.options)} for each in self.rules],
            "decision_timeout_s": list(self.decision_timeouts_s),
            "slots": list(self.slots),
            "queue_policy": list(self.queue_policies),
            "queries": self.queries,
            "replicates": self.replicates,
            "seed": self.seed,
            "server_behaviour": self.behaviour.name,
            "horizon_factor": self.horizon_factor,
            "warm_up_s": self.warm_up_s,
            "brownout": None if self.brownout is None else str(self.brownout),
        }

    @property
    def study_id(self) -> str:
        """Id derived from the design and the runs: equal ones have equal ids."""
        return study_id_of("load", self.design(), repr(self.recorded.shapes))

    def cells(self) -> Iterator[TracedCell]:
        """Yield every crowd, the highest load first, since it takes longest."""
        by_load = sorted(self.arrivals, key=lambda each: -each.rate_per_s)
        factors = (self.decision_timeouts_s, self.slots, self.queue_policies, self.rules)
        for combination in itertools.product(by_load, range(self.replicates), *factors):
            yield TracedCell(self, *combination)

    @property
    def pace(self) -> Pace | None:
        """When the server is slower; None for never."""
        fault = self.brownout
        if fault is None or fault.factor is None or fault.window_s is None:
            return None
        return Pace(fault.factor, *fault.window_s)

    @property
    def total_queries(self) -> int:
        """Number of queries of all crowds together."""
        factors = (self.arrivals, self.rules, self.decision_timeouts_s, self.slots, self.queue_policies)
        return math.prod(map(len, factors)) * self.replicates * self.queries


@dataclass(frozen=True)
class TracedCell:
    """One crowd, with everything a worker needs: a level of each factor. slots: None for no limit."""

    design: TracedLoadDesign
    arrivals: Arrivals
    replicate: int
    decision_timeout_s: float
    slots: int | None
    policy: str
    named: NamedRule

    @property
    def id(self) -> str:
        """Id of the crowd, unique in its study."""
        load = (self.arrivals.kind, f"{self.arrivals.rate_per_s:g}", self.replicate)
        parts = (*load, f"{self.decision_timeout_s:g}", self.slots, self.policy, self.named.label)
        return " ".join(map(str, parts))

    @property
    def seed(self) -> int:
        """Seed of the replicate, the same at every load and under every alternative: common random numbers."""
        return replicate_seed(self.design.seed, self.replicate)

    @property
    def horizon_s(self) -> float:
        """How long each query is observed at most."""
        return horizon_of(self.decision_timeout_s, self.design.horizon_factor)
