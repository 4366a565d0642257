"""The table `sources`: how each source of each run ended, derived from the events alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd

from docmind_lab.analysis.tables.frames import ExtraTable, typed_rows
from docmind_lab.analysis.tables.records import Column
from docmind_lab.workloads.research.exits import COMPLETE, EXIT_REASONS

COLUMNS = (
    Column("study_id", "level", "Study that the run belongs to."),
    Column("run_id", "text", "Run that the source was worked on in."),
    Column("alternative", "level", "How the run's deadline was enforced."),
    Column("question_id", "level", "Task of the run."),
    Column("hypothesis", "level", "Hypothesis, within its task."),
    Column("source", "level", "Source."),
    Column(
        "exit_reason",
        "level",
        "Why work on it ended; missing for one that was still at work when observation ended.",
        tuple(EXIT_REASONS),
    ),
    Column("started_at_s", "float", "When work on it began, since the run's start."),
    Column("ended_at_s", "float", "When it ended; NaN for one still at work."),
    Column("after_deadline", "bool", "Whether it ended after the run's deadline, or not at all."),
    Column("queries_executed", "float", "Attempts, failed ones included; NaN for one still at work, as below."),
    Column("queries_failed", "float", "Attempts that failed."),
    Column("results_found", "float", "Results that the source gave, before the filter."),
    Column("results_accepted", "float", "Results that the filter accepted, each once."),
    Column("results_unfiltered", "float", "Results kept although the budget ended before the filter saw them."),
    Column(
        "saturation_decision", "level", "The model's last decision; missing without one.", ("SATURATED", "CONTINUE")
    ),
)
_KEY = ["run_id", "hypothesis", "source"]


def sources_frame(events: pd.DataFrame, runs: pd.DataFrame, calls: pd.DataFrame) -> pd.DataFrame:
    """One row for each source that a run started, by run, hypothesis and source."""
    started = _rows(events, "source_started")
    completed = {(row["run_id"], row["hypothesis"], row["source"]): row for row in _rows(events, COMPLETE)}
    of_run = runs.set_index("run_id")
    rows = [_row(row, completed.get((row["run_id"], row["hypothesis"], row["source"])), of_run) for row in started]
    frame = typed_rows(COLUMNS, rows)
    return frame.sort_values(_KEY, key=lambda values: values.astype("str"), ignore_index=True)


def _rows(events: pd.DataFrame, name: str) -> list[dict[str, Any]]:
    chosen = events[events["event"] == name]
    return [
        {"run_id": str(run_id), "at_s": float(at_s), **json.loads(detail)}
        for run_id, at_s, detail in zip(chosen["run_id"], chosen["at_s"], chosen["detail"], strict=True)
    ]


def _row(started: dict[str, Any], ended: dict[str, Any] | None, runs: pd.DataFrame) -> dict[str, Any]:
    run = runs.loc[started["run_id"]]
    ended_at_s = math.nan if ended is None else ended["at_s"]
    counted = {
        column.name: math.nan if ended is None else float(ended[column.name])
        for column in COLUMNS
        if column.name.startswith(("queries_", "results_"))
    }
    return {
        "study_id": run["study_id"],
        "run_id": started["run_id"],
        "alternative": run["alternative"],
        "question_id": run["question_id"],
        "hypothesis": started["hypothesis"],
        "source": started["source"],
        "exit_reason": None if ended is None else ended["exit_reason"],
        "started_at_s": started["at_s"],
        "ended_at_s": ended_at_s,
        "after_deadline": not ended_at_s <= run["decision_timeout_s"],
        **counted,
        "saturation_decision": None if ended is None else ended["saturation_decision"],
    }


SOURCES = ExtraTable(
    name="sources",
    meaning="How work on each source ended, for each hypothesis of each run.",
    columns=COLUMNS,
    derive=sources_frame,
)
