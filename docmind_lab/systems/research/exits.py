"""The reasons why work on a source ends, the event that records the end, and the table `sources` made from it.

The event `source_saturation_complete` is written once for every source that was started, whatever ended it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from docmind_lab.tables.frames import ExtraTable, event_rows, rows_of, rows_to_frame
from docmind_lab.tables.records import Column

COMPLETE = "source_saturation_complete"
"""Name of the event."""

ExitReason = Literal[
    "llm_saturated",  # The model decided that the source has nothing more to give.
    "max_queries_reached",  # The source had as many attempts as it was allowed.
    "time_limit_reached",  # The source had used up its time when an attempt was over.
    "research_budget_exhausted",  # The budget of the research, or a propagated deadline, was over.
    "query_generation_error",  # The model gave no usable decision, after one more chance.
    "empty_query_suggestion",  # The model had no further query to suggest.
    "wound_down",  # Little time was left, and the policy wind_down lets no further query begin then.
    "duplicate_query_skipped",  # The query suggested had been put to the source before, or nearly so.
    "unknown_source",  # The task names a source that does not exist.
    "source_error",  # Something broke that the loop does not know how to go on from.
    "cancelled",  # The work was stopped from outside: cancelled, or drained between two steps.
]
EXIT_REASONS: tuple[ExitReason, ...] = get_args(ExitReason)


@dataclass(frozen=True)
class Completion:
    """How the work on one source ended, for one hypothesis.

    queries_executed: attempts, of which queries_failed failed. results_found: by the source, before anything was
    filtered. results_accepted: by the filter, each once. results_unfiltered: kept although the budget ended before
    the filter saw them. saturation_decision: the last one, None if there was none.
    started_at_s, ended_at_s: seconds since the start of the research.
    """

    hypothesis: str
    source: str
    exit_reason: ExitReason
    queries_executed: int = 0
    queries_failed: int = 0
    results_found: int = 0
    results_accepted: int = 0
    results_unfiltered: int = 0
    saturation_decision: str | None = None
    started_at_s: float = 0.0
    ended_at_s: float = 0.0


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
        EXIT_REASONS,
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
    """Build the table `sources`: one row for each source that a run started, by run, hypothesis and source."""
    started = _details(events, "source_started", "started_at_s")
    ended = _details(events, COMPLETE, "ended_at_s").drop(columns="started_at_s", errors="ignore")
    of_runs = runs[["study_id", "run_id", "alternative", "question_id", "decision_timeout_s"]]
    joined = started.merge(ended, how="left", on=_KEY).merge(of_runs.astype({"run_id": "object"}), on="run_id")
    joined["after_deadline"] = ~(joined["ended_at_s"] <= joined["decision_timeout_s"])
    frame = rows_to_frame(COLUMNS, rows_of(joined))
    return frame.sort_values(_KEY, key=lambda values: values.astype("str"), ignore_index=True)


def _details(events: pd.DataFrame, name: str, instant: str) -> pd.DataFrame:
    """Return the details of the events of one name, with the run and the instant of each."""
    chosen = event_rows(events, name)
    rows = [{**row["detail"], "run_id": str(row["run_id"]), instant: float(row["at_s"])} for row in chosen]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*_KEY, instant], dtype="object")


SOURCES = ExtraTable(
    name="sources",
    meaning="How work on each source ended, for each hypothesis of each run.",
    columns=COLUMNS,
    derive=sources_frame,
)
