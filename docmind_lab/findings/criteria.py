"""The measures that arms are compared by, in their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import pandas as pd

from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.statistics.interval import Interval


@dataclass(frozen=True)
class Criterion:
    """A measure that arms are compared by.

    Args:
        name: Column of `runs`, or the name of what is derived from several.
        words: Its name within a sentence: "source recall".
        better: 1 if more of it is better, −1 if less is.
        margin: A difference up to this one does not matter, in the measure's unit.
        unit: " s", or empty.
        digits: Digits after the point, as people read it.
        derived: Function of the runs that returns the value of each; None for the column of that name.
        quantile: The quantile that is compared; None for the mean, or the share.
    """

    name: str
    words: str
    better: Literal[1, -1]
    margin: float = 0.0
    unit: str = ""
    digits: int = 2
    derived: Callable[[pd.DataFrame], pd.Series[float]] | None = None
    quantile: float | None = None

    def values(self, runs: pd.DataFrame) -> pd.Series[float]:
        """Return the value of each run; NaN where it is not known."""
        return runs[self.name].astype("float64") if self.derived is None else self.derived(runs)

    def number(self, value: float) -> str:
        """Return a value as people read it: "0.12", "1.50 s"."""
        return f"{value:.{self.digits}f}{self.unit}"

    def bounds(self, interval: Interval) -> str:
        """Return the bounds of an interval as people read them: "[0.05, 0.18]"."""
        return f"[{interval.low:.{self.digits}f}, {interval.high:.{self.digits}f}]"


def overran(runs: pd.DataFrame) -> pd.Series[bool]:
    """Return for each run whether its caller was late by more than `HELD_WITHIN_S`; unfinished runs count as late."""
    return runs["caller_overrun_s"].fillna(math.inf) > HELD_WITHIN_S


def gave_something(runs: pd.DataFrame) -> pd.Series[float]:
    """Return whether each caller was given an answer, a part of one, or documents. A run that failed may have these."""
    return (runs["outcome"].astype("str").isin(("answered", "partial")) | (runs["source_recall"] > 0)) * 1.0


CRITERIA: Final = (
    Criterion("overran", "the share of callers that waited too long", -1, derived=lambda runs: overran(runs) * 1.0),
    Criterion("answered_in_time", "the share answered in time", 1, 0.05),
    Criterion("given", "the share of callers given anything", 1, 0.05, derived=gave_something),
    Criterion("source_recall", "source recall", 1, 0.02),
    # 50 ms of a server, and as much of a wait as a caller is allowed: less is noise of a machine.
    Criterion("busy_after_deadline_s", "server time after the deadline", -1, 0.05, " s"),
    Criterion("work_overrun_s", "the time until all work ended", -1, HELD_WITHIN_S, " s"),
)
"""The measures that arms are compared by, in order. A measure that is not known for every run is left out.

How a run without an answer ended is no measure: an error is no worse for its caller than a timeout.
"""
