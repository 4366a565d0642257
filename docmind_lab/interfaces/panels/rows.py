"""The rows of a study that belong together: its runs, the calls of one, the events of one, each by filters.

A filter that is left empty keeps everything.
"""

from __future__ import annotations

import pandas as pd

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.plots.selection import StudyTables

_RUN_COLUMNS = (
    "run_id",
    "arm",
    "question_id",
    "seed",
    "decision_timeout_s",
    "outcome",
    "returned_at_s",
    "caller_overrun_s",
    "work_overrun_s",
)
_CALL_COLUMNS = (
    "call_id",
    "attempt",
    "seen_from",
    "kind",
    "role",
    "step",
    "started_at_s",
    "ended_at_s",
    "latency_s",
    "timeout_s",
    "remaining_at_start_s",
    "outcome",
    "error_type",
    "started_after_deadline",
    "ended_after_return",
)
_EVENT_COLUMNS = ("at_s", "event", "role", "detail")


def run_rows(study: StudyTables, *, arm: str = "", outcome: str = "") -> pd.DataFrame:
    """The runs, in the order of their arms and seeds: who, which question, how it ended, both overruns.

    arm: as `conditions.with_arms` has it. outcome: of the run.
    """
    runs = with_arms(study.runs).sort_values(["arm", "decision_timeout_s", "seed", "run_id"], ignore_index=True)
    return _kept(runs, arm=arm, outcome=outcome)[list(_RUN_COLUMNS)].reset_index(drop=True)


def call_rows(
    study: StudyTables, run_id: str, *, role: str = "", kind: str = "", outcome: str = "", seen_from: str = ""
) -> pd.DataFrame:
    """The calls of a run as they began, the client's view of each and the server's one after the other."""
    calls = study.calls[study.calls["run_id"] == run_id]
    kept = _kept(calls, role=role, kind=kind, outcome=outcome, seen_from=seen_from)
    ordered = kept.sort_values(["started_at_s", "call_id", "attempt", "seen_from"], ignore_index=True)
    return ordered[list(_CALL_COLUMNS)]


def event_rows(study: StudyTables, run_id: str, *, event: str = "", role: str = "") -> pd.DataFrame:
    """The events of a run in the order in which they happened."""
    events = study.events[study.events["run_id"] == run_id]
    return _kept(events, event=event, role=role).sort_values("at_s", ignore_index=True)[list(_EVENT_COLUMNS)]


def levels_of(frame: pd.DataFrame, column: str) -> list[str]:
    """The values that a column has, in its own order if it has one, else sorted; empty ones left out."""
    values = frame[column].drop_duplicates().sort_values()
    return [str(value) for value in values if str(value)]


def _kept(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    for column, value in wanted.items():
        if value:
            frame = frame[frame[column].astype("str") == value]
    return frame
