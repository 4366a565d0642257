"""The measures that arms are compared by, in their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd

from docmind_lab.core.deadlines import HELD_WITHIN_S


@dataclass(frozen=True)
class Criterion:
    """A measure that arms are compared by.

    words: its name within a sentence: "source recall". better: 1 if more of it is better, −1 if less is. margin: a
    difference up to this one does not matter, in the measure's unit. unit: " s", or empty. digits: after the point, as
    people read it.
    """

    name: str
    words: str
    better: int
    margin: float
    unit: str
    digits: int
    values: Callable[[pd.DataFrame], pd.Series[float]]


def overran(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return for each run whether its caller was late by more than `HELD_WITHIN_S`; unfinished runs count as late."""
    return runs["caller_overrun_s"].fillna(math.inf) > HELD_WITHIN_S


def _column(name: str) -> Callable[[pd.DataFrame], pd.Series[float]]:
    return lambda runs: runs[name].astype("float64")


def gave_something(runs: pd.DataFrame) -> pd.Series[float]:
    """Return whether each caller was given an answer, a part of one, or documents. A run that failed may have these."""
    return (runs["outcome"].astype("str").isin(("answered", "partial")) | (runs["source_recall"] > 0)) * 1.0


CRITERIA: Final = (
    Criterion("overran", "the share of callers that waited too long", -1, 0.0, "", 2, lambda r: overran(r) * 1.0),
    Criterion("answered_in_time", "the share answered in time", 1, 0.05, "", 2, _column("answered_in_time")),
    Criterion("given", "the share of callers given anything", 1, 0.05, "", 2, gave_something),
    Criterion("source_recall", "source recall", 1, 0.02, "", 2, _column("source_recall")),
    # 50 ms of a server, and as much of a wait as a caller is allowed: less is noise of a machine.
    Criterion(
        "busy_after_deadline_s", "server time after the deadline", -1, 0.05, " s", 2, _column("busy_after_deadline_s")
    ),
    Criterion("work_overrun_s", "the time until all work ended", -1, HELD_WITHIN_S, " s", 2, _column("work_overrun_s")),
)
"""The measures that arms are compared by, in order. A measure that is not known for every run is left out.

How a run without an answer ended is no measure: an error is no worse for its caller than a timeout.
"""
