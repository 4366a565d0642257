"""Made-up runs for tests of what is done with tables; nothing here was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import to_frame, with_dtypes
from docmind_lab.tables.records import CallRecord, EventRecord, RunRecord

MANIFEST: dict[str, Any] = {"schema_version": 1, "study_id": "made-up", "design": {"seed": 7}}
LEVELS = ("unguarded", "cooperative", "hard_timeout", "async_cancellation", "stop_flag")


def sample_run(alternative: str, repeat: int, **changes: Any) -> RunRecord:
    """A run that answered in time; `changes` replace columns."""
    values: dict[str, Any] = {
        "study_id": "made-up",
        "run_id": f"{alternative}-{repeat}",
        "workload": "supervisor",
        "alternative": alternative,
        "alternative_options": "{}",
        "seed": repeat,
        "question_id": f"q{repeat:02}",
        "decision_timeout_s": 2.0,
        "horizon_s": 10.0,
        "deadline_propagation": alternative == "cooperative",
        "router_injection": False,
        "retries": "sdk:2",
        "latency_profile": "typical/6",
        "fault": "none",
        "stops_on_disconnect": True,
        "node_mode": "sync",
        "clock": "wall",
        "returned_at_s": 1.5,
        "quiescent_at_s": 1.5,
        "work_censored": False,
        "caller_overrun_s": 0.0,
        "work_overrun_s": 0.0,
        "outcome": "answered",
        "answered_in_time": True,
        "stop_reason": "",
        "llm_calls": 9,
        "retrieval_calls": 1,
        "calls_after_deadline": 0.0,
        "busy_after_deadline_s": 0.0,
        "tokens_after_deadline": 0.0,
        "late_checkpoints": 0,
        "threads_left": 0,
        "propagation_coverage": math.nan,
        "documents_count": 5,
        "source_recall": 1.0,
        "recall_at_deadline": 1.0,
        "answer_score": 0.5,
        "coordination_overhead_s": math.nan,
    }
    return RunRecord(**{**values, **changes})


def sample_study(runs: int = 3, **changes: Any) -> Study:
    """A study of made-up runs of every alternative."""
    records = [sample_run(level, repeat, **changes) for level in LEVELS for repeat in range(runs)]
    return study_of(records)


def study_of(records: list[RunRecord], calls: Sequence[CallRecord] = ()) -> Study:
    """A study of these runs and calls."""
    events = [EventRecord("made-up", run.run_id, 0.0, "run_started", "", {}) for run in records]
    return Study(
        runs=to_frame("runs", records),
        calls=to_frame("calls", calls),
        events=to_frame("events", events),
        manifest=MANIFEST,
    )


def concatenated(table: str, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames of one table below each other, dtypes kept; levels are united."""
    plain = [frame.astype(dict.fromkeys(frame.select_dtypes("category"), "str")) for frame in frames]
    return with_dtypes(table, pd.concat(plain, ignore_index=True))
