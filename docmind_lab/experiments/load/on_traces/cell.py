"""Compute one crowd of recorded runs in a worker process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.analysis.statistics.interval import Floats
from docmind_lab.analysis.traces.outcomes import ENDINGS
from docmind_lab.analysis.traces.rules import NamedRule
from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.server_behaviour import ServerBehaviour
from docmind_lab.experiments.load.arrivals import Arrivals
from docmind_lab.experiments.load.measures import crowd_measures
from docmind_lab.experiments.load.on_traces.crowd import Crowd, CrowdRows, Typical
from docmind_lab.experiments.load.on_traces.shapes import RunShape
from docmind_lab.services.plan import Pace

QUANTILES: Mapping[str, float] = {"response_p90_s": 0.9, "response_p99_s": 0.99}
"""The quantiles of response times beside the median, by column."""


@dataclass(frozen=True)
class Recorded:
    """The recorded runs that queries are taken from.

    Args:
        shapes: The runs.
        in_order: Whether query n is run n, from the first on again after the last; else each is drawn.
    """

    shapes: tuple[RunShape, ...]
    in_order: bool = False

    def of_query(self, number: int, seed: int) -> RunShape:
        """Return the run of a query. seed: of its replicate."""
        if self.in_order:
            return self.shapes[number % len(self.shapes)]
        return self.shapes[int(keyed_uniform(seed, "recorded run", number) * len(self.shapes))]


@dataclass(frozen=True)
class TracedCell:
    """One crowd: everything a worker needs.

    Args:
        id: Unique in its study.
        recorded: The runs.
        arrivals: When queries come.
        queries: How many.
        seed: Of the replicate.
        replicate: Its number.
        named: The alternative.
        behaviour: What the server does with calls whose clients have left.
        slots: Model calls that the server works on at once; None for no limit.
        policy: Which waiting call is served next.
        decision_timeout_s: Seconds for each query.
        horizon_s: How long each query is observed at most.
        window_from_s: Queries that come earlier are not counted.
        pace: When the server is slower; None for never.
    """

    id: str
    recorded: Recorded
    arrivals: Arrivals
    queries: int
    seed: int
    replicate: int
    named: NamedRule
    behaviour: ServerBehaviour
    slots: int | None
    policy: str
    decision_timeout_s: float
    horizon_s: float
    window_from_s: float
    pace: Pace | None = None


@dataclass(frozen=True)
class TracedCellResult:
    """What a crowd came to.

    Args:
        cell_id: The crowd.
        row: Its measures by name, with what was varied.
        queries: One row per query.
        cpu_s: CPU seconds of its process.
        events: Number of events.
        stalled: Empty: nothing here can stall.
        error: Why there is no row, of a crowd that was lost twice.
    """

    cell_id: str
    row: Mapping[str, Any] = field(default_factory=dict)
    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    cpu_s: float = 0.0
    events: int = 0
    stalled: str = ""
    error: Exception | None = None


def run_traced_cell(cell: TracedCell, attempt: int = 1) -> TracedCellResult:
    """Run a crowd and return its measures.

    Args:
        cell: The crowd.
        attempt: Counts, for executors that take the same call for the same result.
    """
    begun_s = time.process_time()
    instants_s = cell.arrivals.instants(cell.queries, cell.seed)
    crowd = Crowd(
        cell.named.rule,
        cell.behaviour,
        slots=cell.slots,
        policy=cell.policy,
        decision_timeout_s=cell.decision_timeout_s,
        horizon_s=cell.horizon_s,
        typical=Typical.of(cell.recorded.shapes),
        pace=cell.pace,
    )
    shapes = (cell.recorded.of_query(number, cell.seed) for number in range(cell.queries))
    rows = crowd.run(instants_s, shapes)
    asked = _queries(cell, np.asarray(instants_s), rows)
    measured = crowd_measures(asked, _requests(asked, rows), "arrival")
    counted = asked[asked["scheduled_at_s"].between(cell.window_from_s, _until_s(cell, instants_s), inclusive="left")]
    response_s = np.sort(counted["response_s"].fillna(np.inf).to_numpy())
    quantiles = {name: _quantile(response_s, level) for name, level in QUANTILES.items()}
    varied = {
        "alternative": cell.named.alternative,
        "alternative_options": cell.named.options,
        "decision_timeout_s": cell.decision_timeout_s,
        "queue_policy": cell.policy,
        "arrivals": cell.arrivals.kind,
        "offered_per_s": cell.arrivals.rate_per_s,
        "replicate": cell.replicate,
        "slots": cell.slots,
        "callers": None,
    }
    kept = asked[["scheduled_at_s", "response_s", "in_time", "outcome"]].assign(
        offered_per_s=cell.arrivals.rate_per_s, replicate=cell.replicate, crowd=cell.id
    )
    kept = kept.astype({"crowd": "category", "replicate": "int32"})
    return TracedCellResult(cell.id, varied | measured | quantiles, kept, time.process_time() - begun_s, rows.events)


def _until_s(cell: TracedCell, instants_s: tuple[float, ...]) -> float:
    return instants_s[-1] - cell.decision_timeout_s


def _quantile(in_order: Floats, level: float) -> float:
    """The value below which this share is. An observation and no point between two: one of them may be infinite."""
    return float(in_order[min(len(in_order) - 1, int(level * len(in_order)))]) if len(in_order) else float("nan")


def _queries(cell: TracedCell, scheduled_at_s: Floats, rows: CrowdRows) -> pd.DataFrame:
    returned_at_s = np.asarray(rows.returned_at_s)
    outcome: NDArray[np.int8] = np.asarray(rows.outcome, dtype=np.int8)
    response_s = returned_at_s - scheduled_at_s
    in_time = (outcome == ENDINGS.index("answered")) & (returned_at_s <= scheduled_at_s + cell.decision_timeout_s)
    return pd.DataFrame(
        {
            "scheduled_at_s": scheduled_at_s,
            "response_s": response_s,
            "returned_at_s": response_s,
            "in_time": in_time,
            "answered_in_time": in_time,
            "outcome": pd.Categorical.from_codes(outcome, categories=pd.Index(ENDINGS)),
            "late_s": 0.0,
            "slots": pd.array([cell.slots] * len(outcome), dtype="Int64"),
            "second_budgets": pd.Categorical([NO_BUDGETS]).take([0] * len(outcome)),
            "stop_reason": pd.Categorical([""]).take([0] * len(outcome)),
            "window_from_s": cell.window_from_s,
            "window_until_s": float(scheduled_at_s[-1]) - cell.decision_timeout_s,
            "wanted_until_s": np.fmin(scheduled_at_s + cell.decision_timeout_s, returned_at_s),
        }
    )


def _requests(asked: pd.DataFrame, rows: CrowdRows) -> pd.DataFrame:
    query = np.asarray(rows.request_query, dtype=np.int64)
    return pd.DataFrame(
        {
            "received_at_s": np.asarray(rows.received_at_s),
            "served_from_s": np.asarray(rows.served_from_s),
            "left_at_s": np.asarray(rows.left_at_s),
            "wanted_until_s": asked["wanted_until_s"].to_numpy()[query],
        }
    )
