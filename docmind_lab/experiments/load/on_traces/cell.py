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
from docmind_lab.core.budgets import NO_BUDGETS
from docmind_lab.experiments.batch.cells import CellOutcome
from docmind_lab.experiments.load.measures import crowd_measures
from docmind_lab.experiments.load.on_traces.crowd import Crowd, CrowdRows
from docmind_lab.experiments.load.on_traces.design import TracedCell

QUANTILES: Mapping[str, float] = {"response_p90_s": 0.9, "response_p99_s": 0.99}
"""The quantiles of response times beside the median, by column."""


@dataclass(frozen=True)
class TracedCellResult(CellOutcome):
    """A crowd's measures by name, with what was varied; a row for each query; and the number of events."""

    row: Mapping[str, Any] = field(default_factory=dict)
    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    events: int = 0


def run_traced_cell(cell: TracedCell, attempt: int = 1) -> TracedCellResult:
    """Run a crowd and return its measures. attempt: counts, as for `run_cell`."""
    begun_s = time.process_time()
    instants_s = cell.arrivals.instants(cell.design.queries, cell.seed)
    shapes = (cell.design.recorded.of_query(number, cell.seed) for number in range(len(instants_s)))
    rows = Crowd(cell).run(instants_s, shapes)
    asked = _queries(cell, np.asarray(instants_s), rows)
    measured = crowd_measures(asked, _requests(asked, rows), "arrival")
    first = asked.iloc[0]
    counted = asked[asked["scheduled_at_s"].between(first["window_from_s"], first["window_until_s"], inclusive="left")]
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
    cpu_s = time.process_time() - begun_s
    return TracedCellResult(cell.id, varied | measured | quantiles, kept, rows.events, cpu_s=cpu_s)


def _quantile(in_order: Floats, level: float) -> float:
    """The value below which this share is. An observation and no point between two: one of them may be infinite."""
    return float(in_order[min(len(in_order) - 1, int(level * len(in_order)))]) if len(in_order) else float("nan")


def _queries(cell: TracedCell, scheduled_at_s: Floats, rows: CrowdRows) -> pd.DataFrame:
    timeout_s = cell.decision_timeout_s
    returned_at_s = np.asarray(rows.returned_at_s)
    outcome: NDArray[np.int8] = np.asarray(rows.outcome, dtype=np.int8)
    response_s = returned_at_s - scheduled_at_s
    in_time = (outcome == ENDINGS.index("answered")) & (returned_at_s <= scheduled_at_s + timeout_s)
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
            "window_from_s": cell.design.counted_from_s(timeout_s),
            "window_until_s": float(scheduled_at_s[-1]) - timeout_s,
            "wanted_until_s": np.fmin(scheduled_at_s + timeout_s, returned_at_s),
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
