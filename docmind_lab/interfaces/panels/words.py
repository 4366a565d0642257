"""What a panel says in text: how far a sweep is, and what it has found by now."""

from __future__ import annotations

import dataclasses

from docmind_lab.analysis.findings.tables import one_line
from docmind_lab.analysis.summary import summarise
from docmind_lab.interfaces.panels.choice import PanelChoice
from docmind_lab.interfaces.panels.panel_run import PanelRun


def status_of(sweep: PanelRun) -> str:
    """The sweep in a line: "20 s: 31 of 160 runs done. In time: A  cooperative 6 of 8, …"."""
    budget = f"{sweep.choice.decision_timeout_s:g} s"
    if sweep.error is not None:
        return f"{budget}: {sweep.error}"
    if not sweep.measured:
        return (
            f"{budget}: stopped before the first run" if sweep.state == "stopped" else f"{budget}: {_beginning(sweep)}"
        )
    ended = {"stopped": "stopped, ", "done": "complete, "}.get(sweep.state, "")
    return f"{budget}: {ended}{len(sweep.measured)} of {sweep.total} runs done. {_in_time(sweep)}"


def asked(choice: PanelChoice, shown: PanelChoice | None) -> str:
    """What has just been asked for, and what is on screen meanwhile."""
    text = f"{choice.decision_timeout_s:g} s: being computed"
    if shown is None or shown == choice:
        return text
    return f"{text}; on screen are the runs before: {changes(shown, choice)}"


def changes(before: PanelChoice, now: PanelChoice) -> str:
    """What is different now, in words: "decision timeout (s) 20 → 8, fault none → hang"; empty if nothing is."""
    pairs = [
        (name.replace("_s", " (s)") if name.endswith("_s") else name, getattr(before, name), getattr(now, name))
        for name in (field.name for field in dataclasses.fields(PanelChoice))
    ]
    return ", ".join(f"{name.replace('_', ' ')} {_said(old)} → {_said(new)}" for name, old, new in pairs if old != new)


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def needs_run(choice: PanelChoice) -> str:
    """Why nothing happens by itself on the wall clock."""
    return (
        f"{choice.decision_timeout_s:g} s on the wall clock: real time is measured on request only; press Run for "
        f"{choice.runs * len(choice.alternatives)} runs"
    )


def _beginning(sweep: PanelRun) -> str:
    where = "the services start" if sweep.choice.clock == "wall" else "processes start and index the documents"
    return f"0 of {sweep.total} runs done; the first takes a while when {where}"


def _in_time(sweep: PanelRun) -> str:
    rows = summarise(sweep.tables.runs, {}).table
    counts = zip(rows.index, rows["answered_in_time"], rows["runs"], strict=True)
    return f"In time: {', '.join(f'{one_line(str(label))} {number} of {runs}' for label, number, runs in counts)}"
