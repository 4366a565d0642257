"""The design of a load study on traces: every combination of what is varied, and the crowds that follow."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from docmind_lab.analysis.traces.rules import NamedRule
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.load.arrivals import Arrivals, as_json
from docmind_lab.experiments.load.design import CrowdsDesign, replicate_seed, require_count
from docmind_lab.experiments.load.on_traces.cell import Recorded, TracedCell
from docmind_lab.experiments.load.on_traces.policies import check_policy
from docmind_lab.experiments.measurement.derive import horizon_of
from docmind_lab.services.faults import Fault
from docmind_lab.services.plan import Pace

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
            check_policy(policy)
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
        text = json.dumps(self.design(), sort_keys=True) + repr(self.recorded.shapes)
        return f"load-{hashlib.blake2b(text.encode(), digest_size=5).hexdigest()}"

    def cells(self) -> Iterator[TracedCell]:
        """Yield every crowd, the highest load first, since it takes longest."""
        for arrivals in sorted(self.arrivals, key=lambda each: -each.rate_per_s):
            for replicate in range(self.replicates):
                for timeout_s in self.decision_timeouts_s:
                    for count in self.slots:
                        for policy in self.queue_policies:
                            for named in self.rules:
                                yield self._cell(arrivals, replicate, timeout_s, count, policy, named)

    def _cell(
        self, arrivals: Arrivals, replicate: int, timeout_s: float, slots: int | None, policy: str, named: NamedRule
    ) -> TracedCell:
        parts = (arrivals.kind, f"{arrivals.rate_per_s:g}", replicate, f"{timeout_s:g}", slots, policy, named.label)
        return TracedCell(
            id=" ".join(map(str, parts)),
            recorded=self.recorded,
            arrivals=arrivals,
            queries=self.queries,
            # The same at every load and under every alternative: common random numbers.
            seed=replicate_seed(self.seed, replicate),
            replicate=replicate,
            named=named,
            behaviour=self.behaviour,
            slots=slots,
            policy=policy,
            decision_timeout_s=timeout_s,
            horizon_s=horizon_of(timeout_s, self.horizon_factor),
            window_from_s=self.counted_from_s(timeout_s),
            pace=self._pace,
        )

    @property
    def _pace(self) -> Pace | None:
        fault = self.brownout
        if fault is None or fault.factor is None or fault.window_s is None:
            return None
        return Pace(fault.factor, *fault.window_s)

    @property
    def total_queries(self) -> int:
        """Number of queries of all crowds together."""
        factors = (self.arrivals, self.rules, self.decision_timeouts_s, self.slots, self.queue_policies)
        return math.prod(map(len, factors)) * self.replicates * self.queries
