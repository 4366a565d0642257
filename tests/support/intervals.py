"""Whether an interval holds a value that is known to be true."""

from __future__ import annotations

from docmind_lab.statistics.interval import Interval


def holds(interval: Interval, value: float) -> bool:
    """Whether the value lies within the interval, its bounds included."""
    return interval.low <= value <= interval.high
