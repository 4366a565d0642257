"""The measures that arms are compared by, in their order, how they differ, and how that is said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.text import count_of, one_line, percent
from docmind_lab.statistics.differences import column_values, mean_difference, paired_mean_difference
from docmind_lab.statistics.interval import Difference, Interval
from docmind_lab.statistics.shares import paired_share_difference, share_difference, share_of_unseen


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
    """

    name: str
    words: str
    better: Literal[1, -1]
    margin: float = 0.0
    unit: str = ""
    digits: int = 2
    derived: Callable[[pd.DataFrame], pd.Series[float]] | None = None

    def values(self, runs: pd.DataFrame) -> pd.Series[float]:
        """Return the value of each run; NaN where it is not known."""
        return runs[self.name].astype("float64") if self.derived is None else self.derived(runs)

    def number(self, value: float) -> str:
        """Return a value as people read it: "0.12", "1.50 s"."""
        return f"{value:.{self.digits}f}{self.unit}"

    def change(self, difference: float, low: float, high: float) -> str:
        """Return a difference with its interval and their signs: "−0.75 [−0.87, −0.56]"."""
        change, least, most = (_signed(each, self.digits) for each in (difference, low, high))
        return f"{change} [{least}, {most}]"

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

MEASURES: Final[Mapping[str, Criterion]] = {
    each.name: each
    for each in (
        Criterion("answered_in_time", "answered in time", 1),
        Criterion("time_to_answer_s", "time to an answer, up to the deadline", -1, unit=" s"),
        Criterion("caller_overrun_s", "caller overrun", -1, unit=" s", digits=3),
        Criterion("busy_after_deadline_s", "late server seconds per run", -1, unit=" s"),
        Criterion("source_recall", "source recall", 1),
    )
}
"""The measures in which two arms, or two studies, are set beside each other.

An unfinished run's caller overrun counts with its horizon.
"""


def _signed(value: float, digits: int) -> str:
    """Return a number with its sign; 0 without one."""
    text = f"{value:+.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", "−")


def time_to_answer_s(runs: pd.DataFrame) -> npt.NDArray[np.float64]:
    """Return how long each caller was without an answer up to its deadline, seconds: the mean is a restricted mean.

    Whatever became of a run counts: one that failed, or left with a part of an answer, at 3 s counts with its deadline.
    A mean over the answered runs alone would be shorter for the arm that gives up sooner.
    """
    limit_s, at_s = (runs[name].to_numpy(dtype="float64") for name in ("decision_timeout_s", "returned_at_s"))
    return np.where(runs["outcome"].astype("str") == "answered", np.minimum(at_s, limit_s), limit_s)


def is_known(runs: pd.DataFrame, measure: str) -> bool:
    """Whether a measure of `MEASURES` is known for every run."""
    # An unfinished run has an overrun all the same: its whole horizon.
    return measure in ("time_to_answer_s", "caller_overrun_s") or bool(runs[measure].notna().all())


def difference_in(
    measure: str,
    first: pd.DataFrame,
    second: pd.DataFrame,
    confidence: float = 0.95,
    *,
    paired: bool = True,
    resamples: int,
) -> Difference:
    """Return by how much the first runs differ from the second in a measure of `MEASURES` that is known for all.

    first, second: rows of `runs`; of pairs in the same order.
    """
    one, other = (
        time_to_answer_s(side) if measure == "time_to_answer_s" else column_values(side, measure)
        for side in (first, second)
    )
    if measure == "answered_in_time":
        return (paired_share_difference if paired else share_difference)(one > 0, other > 0, confidence)
    return (paired_mean_difference if paired else mean_difference)(one, other, confidence, resamples=resamples)


# More runs than this are not proposed: whoever would need them is told that no practical number settles it.
_MOST_MORE: Final = 100_000


@dataclass(frozen=True)
class Beaten:
    """The arm and the measure that show an arm to be worse.

    worse_by: the mean difference, in the measure's unit. runs_worse, runs_better: in how many of the pairs the beaten
    arm was so by more than the margin. unseen: what an event that no run showed could take from the difference, in the
    measure's unit; 0 for a share.
    """

    by: str
    criterion: Criterion
    worse_by: Interval
    runs_worse: int
    runs_better: int
    unseen: float

    def text(self) -> str:
        """Say by how much the arm is worse: "source recall: 0.40 less than A cooperative [0.31, 0.52]"."""
        criterion, by = self.criterion, self.worse_by
        direction = "more" if criterion.better < 0 else "less"
        text = f"{criterion.words}: {criterion.number(by.estimate)} {direction} than {one_line(self.by)} "
        if self.runs_better:
            return f"{text}{criterion.bounds(by)}"
        return f"{text}{criterion.bounds(by)}, which was in none of {by.n} runs worse, in {self.runs_worse} better"


@dataclass(frozen=True)
class Undecided:
    """A difference between two chosen arms that these runs do not settle.

    better_by: first − second, with the sign turned so that more is better. more_runs: of each arm, which would settle
    it with a probability of 80 % if the difference and its spread stay as they are; inf if no number would. unseen:
    what an event that no run showed could take from the difference, where this alone leaves it open; otherwise 0.
    """

    first: str
    second: str
    criterion: Criterion
    better_by: Interval
    more_runs: float
    unseen: float = 0.0

    def text(self) -> str:
        """Return a sentence on the difference, and how many more runs would settle it."""
        criterion, by = self.criterion, self.better_by
        more = "No practical number of runs would settle it at this difference."
        if self.more_runs <= _MOST_MORE:
            more = f"About {count_of(int(self.more_runs), 'more run')} of each would settle it if the difference stays."
        if self.unseen:
            more = (
                f"An event that no run showed, in up to {percent(share_of_unseen(by.n))} of runs, could cost "
                f"{one_line(self.first)} up to {criterion.number(self.unseen)} a run and outweigh it. {more}"
            )
        if criterion.margin:
            more = f"A difference up to {criterion.margin:g}{criterion.unit} would not matter. {more}"
        return (
            f"Not told apart: {criterion.words}, better under {one_line(self.first)} than under "
            f"{one_line(self.second)} by {criterion.number(by.estimate)} {criterion.bounds(by)}. {more}"
        )
