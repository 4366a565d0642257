"""Made-up runs for whatever order a panel gives, computed by an executor that the test holds back or lets go."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import small_studies
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.batch import Cell, CellResult, Workers
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.tables.records import EventRecord, RunRecord
from docmind_lab.views.panels.panel_settings import PanelChoice

PATIENCE_S = small_studies.PATIENCE_S
SMALL = PanelChoice.of(runs=3, alternatives=("A", "B"))


def measured_of(order: RunOrder) -> MeasuredRun:
    """A run that takes as many seconds as its place among the repeats says, and is cut at its deadline."""
    facts = order.facts
    known = {field.name for field in fields(RunRecord)}
    shared = {name: value for name, value in vars(facts).items() if name in known - {"alternative"}}
    needed_s = 10.0 + int(facts.run_id.rpartition("-")[2])
    in_time = needed_s < facts.decision_timeout_s
    returned_s = min(needed_s, facts.decision_timeout_s)
    run = sample_run(
        facts.alternative,
        facts.seed,
        **shared
        | {
            "returned_at_s": returned_s,
            "quiescent_at_s": returned_s,
            "outcome": "answered" if in_time else "timed_out",
            "answered_in_time": in_time,
        },
    )
    names: dict[str, Any] = {"study_id": facts.study_id, "alternative": facts.alternative}
    calls = tuple(
        call(facts.run_id, role, at_s, at_s + 1.0, seen_from=seen_from, **names)
        for seen_from in ("client", "server")
        for role, at_s in (("router", 0.0), ("synthesis", 1.0))
    )
    events = (EventRecord(facts.study_id, facts.run_id, 0.0, "run_started", "", {}),)
    return MeasuredRun(run, calls, events, Outcome("answered" if in_time else "timed_out"))


def measured_cell(cell: Cell) -> CellResult:
    return CellResult(cell.id, tuple(map(measured_of, cell.orders)))


class Scripted(small_studies.Scripted):
    """Computes these runs at once, or, held back, one for each `let_go`."""

    def __init__(self, *, held: bool = False) -> None:
        super().__init__(measured_cell, held=held)

    def workers(self) -> Workers:
        """Workers that have this executor, two runs at a time."""
        return Workers(lambda: self, window=2)
