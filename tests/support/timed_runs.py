"""Recorded runs of which nothing matters but how long they took, how long they were watched, and how they ended."""

from __future__ import annotations

import math
from typing import Any

from docmind_lab.tables.traces.trace_tables import TracedRun


def timed_run(number: int, seconds: float, *, watched_s: float = math.inf, **others: Any) -> TracedRun:
    """A run that took so long, in a session of its own; cut where it was watched for less."""
    cut = {"ended_at_s": math.nan, "outcome": "cut"} if seconds > watched_s else {"ended_at_s": seconds}
    values = {"session": str(number), "source": "test", "outcome": "answered", **others, **cut}
    return TracedRun(trace_id=str(number), observed_until_s=min(seconds, watched_s), **values)
