"""A saved study as the measured runs that it was made of, as far as its tables tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from docmind_lab.alternatives.base import Outcome
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables import NAN, CallRecord, RunRecord
from docmind_lab.experiments.measurement.run import MeasuredRun


def measured_in(study: Study) -> Iterator[MeasuredRun]:
    """Its runs with their calls; without the answers, the events and the instants of the clock, which no table has."""
    calls = {str(run_id): rows for run_id, rows in study.calls.groupby("run_id", observed=True)}
    for row in _rows(study.runs):
        run = RunRecord(**row)
        made = calls.get(run.run_id)
        called = () if made is None else tuple(CallRecord(**call) for call in _rows(made))
        yield MeasuredRun(run, called, (), Outcome(run.outcome, stop_reason=run.stop_reason), NAN)


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    # Python's own types: an exporter takes no others.
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]
