"""Made-up calls for tests of what is done with tables; nothing here was measured."""

from __future__ import annotations

from typing import Any

from docmind_lab.core.levels import NAN
from docmind_lab.tables.records import CallRecord


def call(run_id: str, role: str, began_s: float, ended_s: float, step: str = "1.0.1", **changes: Any) -> CallRecord:
    """A call of a run with 2 s and a horizon of 10 s, as its client saw it."""
    row: dict[str, Any] = {
        "study_id": "made-up",
        "run_id": run_id,
        "call_id": f"{role}/{step}",
        "parent_call_id": "",
        "attempt": 1,
        "seen_from": "client",
        "workload": "supervisor",
        "alternative": "cooperative",
        "role": role,
        "step": step,
        "kind": "llm",
        "started_at_s": began_s,
        "first_byte_at_s": NAN,
        "ended_at_s": ended_s,
        "latency_s": ended_s - began_s,
        "queue_wait_s": 0.0,
        "timeout_s": NAN,
        "remaining_at_start_s": 2.0 - began_s,
        "overrun_s": 0.0,
        "outcome": "ok",
        "started_after_deadline": False,
        "ended_after_return": False,
        "input_tokens": NAN,
        "output_tokens": NAN,
        "error_type": "",
    }
    return CallRecord(**(row | changes))
