"""A sweep as it stands: what was asked for, the runs that are done, and the tables of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables import to_frame
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.run import comparison_manifest
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.panels.choice import PanelChoice

SweepState = Literal["running", "done", "stopped", "outdated", "failed"]


class SweepTables:
    """The three tables of measured runs, each made when it is first asked for; what figures take."""

    def __init__(self, measured: tuple[MeasuredRun, ...]) -> None:
        self._measured = sorted(measured, key=lambda item: item.run.run_id)

    @functools.cached_property
    def runs(self) -> pd.DataFrame:
        """One row per run."""
        return to_frame("runs", [item.run for item in self._measured])

    @functools.cached_property
    def calls(self) -> pd.DataFrame:
        """One row per attempt and point of view."""
        return to_frame("calls", [call for item in self._measured for call in item.calls])

    @functools.cached_property
    def events(self) -> pd.DataFrame:
        """One row per event."""
        return to_frame("events", [event for item in self._measured for event in item.events])


@dataclass(frozen=True)
class PanelRun:
    """One request as it stands.

    number: counts requests; a greater one is newer. total: runs asked for. error: what a failed one ended with.
    """

    number: int
    choice: PanelChoice
    settings: Settings
    total: int = 0
    measured: tuple[MeasuredRun, ...] = ()
    state: SweepState = "running"
    error: Exception | None = None

    @functools.cached_property
    def tables(self) -> SweepTables:
        """The tables of the runs that are done."""
        return SweepTables(self.measured)

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The comparison that was asked for. Raises: ConfigurationError."""
        return self.choice.comparison(self.settings)

    def study(self) -> Study:
        """The study of the runs that are done: what `compare` returns, once all of them are."""
        tables = self.tables
        is_complete = len(self.measured) == self.total
        manifest = comparison_manifest(self.comparison, self.settings, complete=is_complete)
        return Study(runs=tables.runs, calls=tables.calls, events=tables.events, manifest=manifest)
