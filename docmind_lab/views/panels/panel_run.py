"""A request of a panel: the runs done so far, their tables, and its status in words."""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Literal

from docmind_lab.core.settings import Settings
from docmind_lab.core.text import one_line
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.comparison_run import comparison_manifest
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.findings.study import Study
from docmind_lab.findings.summary import summarise
from docmind_lab.views.panels.panel_settings import LABELS, PanelChoice

SweepState = Literal["running", "done", "stopped", "failed"]


@dataclass(frozen=True)
class PanelRun:
    """One request of a panel with the runs done so far.

    number: counts requests; a greater one is newer. total: runs asked for. starting: what has to start before the first
    run, in words; empty for nothing. error: what a failed one ended with.
    """

    number: int
    choice: PanelChoice
    settings: Settings
    total: int = 0
    measured: tuple[MeasuredRun, ...] = ()
    starting: str = ""
    state: SweepState = "running"
    error: Exception | None = None

    @functools.cached_property
    def tables(self) -> Study:
        """The tables of the runs that are done, with as much of a manifest as their title takes."""
        return Study.of(self.measured, {"design": {"seed": self.choice.seed}})

    @functools.cached_property
    def comparison(self) -> Comparison:
        """The comparison that was requested. Raises: ConfigurationError."""
        return self.choice.comparison(self.settings)

    def study(self) -> Study:
        """Return the study of the runs that are done: what `compare` returns, once all of them are."""
        is_complete = len(self.measured) == self.total
        manifest = comparison_manifest(self.comparison, self.settings, complete=is_complete)
        return dataclasses.replace(self.tables, manifest=manifest)


def status_of(sweep: PanelRun) -> str:
    """Return a status line: "20 s: 31 of 160 runs done. In time: A  cooperative 6 of 8, …"."""
    budget = f"{sweep.choice.decision_timeout_s:g} s"
    if sweep.error is not None:
        return f"{budget}: not measured"
    if not sweep.measured and sweep.state == "stopped":
        return f"{budget}: stopped before the first run"
    if not sweep.measured:
        wait = f"; {sweep.starting}, which takes some seconds" if sweep.starting else ""
        return f"{budget}: 0 of {sweep.total} runs done{wait}"
    ended = {"stopped": "stopped, ", "done": "complete, "}.get(sweep.state, "")
    return f"{budget}: {ended}{len(sweep.measured)} of {sweep.total} runs done. {_in_time_text(sweep)}"


def request_in_words(choice: PanelChoice, shown: PanelChoice | None) -> str:
    """Describe what is being computed, and what the screen shows meanwhile."""
    text = f"{choice.decision_timeout_s:g} s: being computed"
    if shown is None or shown == choice:
        return text
    return f"{text}; on screen are the runs before: {changes(shown, choice)}"


def changes(before: PanelChoice, now: PanelChoice) -> str:
    """Describe the settings that changed: "decision timeout (s) 20 → 8, fault none → hang"; "" if none did."""
    pairs = [(label, getattr(before, name, None), getattr(now, name, None)) for name, label in LABELS.items()]
    return ", ".join(
        f"{label[0].lower()}{label[1:]} {_value_text(old)} → {_value_text(new)}"
        for label, old, new in pairs
        if old != new
    )


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def needs_run(choice: PanelChoice) -> str:
    """Return a text that asks to press Run, since runs on the wall clock do not start by themselves."""
    return (
        f"{choice.decision_timeout_s:g} s on the wall clock: real time is measured on request only; press Run for "
        f"{choice.runs * len(choice.alternatives)} runs"
    )


def _in_time_text(sweep: PanelRun) -> str:
    rows = summarise(sweep.tables.runs, {}).table
    counts = zip(rows.index, rows["answered_in_time"], rows["runs"], strict=True)
    return f"In time: {', '.join(f'{one_line(str(label))} {number} of {runs}' for label, number, runs in counts)}"
