"""Made-up recorded runs for tests; nothing here was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from watched_calls import Watcher

from docmind_lab.core.randomness import run_seed
from docmind_lab.network.attempts import CallKind, LogicalCall
from docmind_lab.tables.traces.importers.recordings import RecordedCall, RecordedRun, Recording


def logical_call(kind: CallKind = "llm", run_id: str = "run") -> LogicalCall:
    """A call of the planner that nobody records."""
    return Watcher().call(run_id=run_id, call_id=f"{kind}/planner/0.0.1", role="planner", step="0.0.1", kind=kind)


def recorded_call(call_id: str, started_at_s: float, ended_at_s: float, **changes: Any) -> RecordedCall:
    """An answered call whose first byte came with its last; `changes` replace fields."""
    kind, role, step = call_id.split("/")
    values: dict[str, Any] = {
        "call_id": call_id,
        "kind": kind,
        "role": role,
        "step": step,
        "attempt": 1,
        "started_at_s": started_at_s,
        "first_byte_at_s": ended_at_s,
        "ended_at_s": ended_at_s,
        "queue_wait_s": 0.0,
        "end": "ok",
        "status": 200,
    }
    return RecordedCall(**{**values, **changes})


def recorded_run(*calls: RecordedCall, **changes: Any) -> RecordedRun:
    """The first run of a study of seed 7, under A; `changes` replace fields."""
    values: dict[str, Any] = {
        "alternative": "cooperative",
        "alternative_options": "{}",
        "seed": run_seed(7, 1),
        "question_id": "q01",
        "decision_timeout_s": 2.0,
        "horizon_s": 10.0,
        "deadline_propagation": True,
        "outcome": "answered",
        "returned_at_s": max((call.ended_at_s for call in calls), default=None),
        "calls": calls,
    }
    return RecordedRun(**{**values, **changes})


def recording_of(*runs: RecordedRun) -> Recording:
    """A recording that was never in a folder."""
    return Recording(runs, {"study_id": "made-up", "recording_format": 1, "complete": True, "has_text": False})


def written(folder: Path, *lines: str) -> Path:
    """A folder with these lines for its runs, and what a manifest must have."""
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(dict(recording_of().manifest)), encoding="utf-8")
    (folder / "runs.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder
