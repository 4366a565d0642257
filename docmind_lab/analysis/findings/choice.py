"""Chooses among the arms of one condition by differences that are paired seed by seed.

    found = choose(runs)
    found.chosen          # arms that no other arm was shown to beat
    found.beaten          # arm → which arm beats it, by which measure, with the interval of the difference
    found.undecided       # differences among the chosen that these runs do not settle, and how many runs would

The rule: an arm is out if it fails a requirement (a documented mistake, every run failed, the deadline not held, second
budgets not kept), or if another arm does better in a measure by more than a margin that matters, with 95 % confidence
over all pairs of arms. The measures are taken in the order of `CRITERIA`, each over the arms that are left. The arm
that is truly best is dropped by chance in at most 2.5 % of studies for each measure.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.findings.second_budgets import spending_of
from docmind_lab.analysis.statistics.interval import Floats, Interval
from docmind_lab.analysis.statistics.means import adjusted_paired_interval, few_differ, student_interval
from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.core.catalogue import is_mistake
from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.core.levels import ENDED_UNANSWERED

FEWEST_PAIRS: Final = 12
"""The fewest pairs of runs with which arms are compared: the intervals are tested from 12 pairs on."""

_CONFIDENCE: Final = 0.95
# Chance that as many more runs as are named do tell two arms apart, if the difference stays what it is.
_POWER: Final = 0.8
# An arm whose overruns are surely more frequent than this does not hold the deadline, whatever the others do.
_OVERRUNS_ALLOWED: Final = 0.05


@dataclass(frozen=True)
class Criterion:
    """A measure that arms are compared by.

    Attributes:
        name: Key of the measure.
        words: Its name within a sentence: "source recall".
        better: 1 if more of it is better, −1 if less is.
        margin: A difference up to this one does not matter, in the measure's unit.
        unit: " s", or empty.
        digits: After the point, as people read it.
        values: The measure of each run.
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


CRITERIA: Final = (
    Criterion("overran", "the share of callers that waited too long", -1, 0.0, "", 2, lambda r: overran(r) * 1.0),
    Criterion(
        "failed",
        "the share of runs that failed",
        -1,
        0.0,
        "",
        2,
        lambda r: (r["outcome"].astype("str") == "failed") * 1.0,
    ),
    # 50 ms of a server, and as much of a wait as a caller is allowed: less is noise of a machine.
    Criterion(
        "busy_after_deadline_s", "server time after the deadline", -1, 0.05, " s", 2, _column("busy_after_deadline_s")
    ),
    Criterion("work_overrun_s", "the time until all work ended", -1, HELD_WITHIN_S, " s", 2, _column("work_overrun_s")),
    Criterion("answered_in_time", "the share answered in time", 1, 0.05, "", 2, _column("answered_in_time")),
    Criterion("source_recall", "source recall", 1, 0.02, "", 2, _column("source_recall")),
)
"""The measures that arms are compared by, in order. A measure that is not known for every run is left out."""


@dataclass(frozen=True)
class Beaten:
    """The arm and the measure that show an arm to be worse. worse_by: a positive interval, in the measure's unit."""

    by: str
    criterion: Criterion
    worse_by: Interval


@dataclass(frozen=True)
class Undecided:
    """A difference between two chosen arms that these runs do not settle.

    better_by: first − second, with the sign turned so that more is better. more_runs: of each arm, which would settle
    it with a probability of 80 % if the difference and its spread stay as they are; inf if no number would.
    """

    first: str
    second: str
    criterion: Criterion
    better_by: Interval
    more_runs: float


@dataclass(frozen=True)
class Choice:
    """The arms to choose from in one condition, and the evidence.

    Attributes:
        chosen: Arms that no other arm was shown to beat, in the order of every figure; empty if none is left.
        runs: Pairs that the comparison rests on; the fewest of any two arms.
        refused: Arm → why it cannot be chosen, whatever the others do.
        beaten: Arm → what beat it.
        undecided: For each measure, the largest open difference between chosen arms; one for two arms.
        same: Groups of chosen arms with the same outcome and the same value of every measure in every run.
        too_few: Whether there are fewer runs than any choice needs.
    """

    chosen: tuple[str, ...]
    runs: int
    refused: Mapping[str, str]
    beaten: Mapping[str, Beaten]
    undecided: tuple[Undecided, ...]
    same: tuple[tuple[str, ...], ...]
    too_few: bool


@dataclass(frozen=True, eq=False)
class _Arm:
    """The runs of an arm as arrays, in the order of their seeds. values: one array for each criterion's name."""

    seeds: npt.NDArray[np.int64]
    outcomes: npt.NDArray[np.str_]
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, group: pd.DataFrame) -> _Arm:
        ordered = group.sort_values("seed")
        values = {each.name: np.asarray(each.values(ordered), dtype=np.float64) for each in CRITERIA}
        return cls(ordered["seed"].to_numpy(), ordered["outcome"].astype("str").to_numpy(dtype="str"), values)

    def shared_positions(self, other: _Arm) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the positions of the seeds that both arms have, in each arm."""
        _, mine, theirs = np.intersect1d(self.seeds, other.seeds, return_indices=True)
        return mine, theirs


def choose(runs: pd.DataFrame) -> Choice:
    """Choose among the arms of one condition by paired evidence.

    Args:
        runs: Rows of `runs` of one condition. Arms are compared over the seeds that both met.
    """
    arms = {str(arm): group for arm, group in with_arms(runs).groupby("arm", observed=True, sort=True)}
    refused = {arm: reason for arm, group in arms.items() if (reason := _refusal(group))}
    left = {arm: _Arm.of(group) for arm, group in arms.items() if arm not in refused}
    pairs = [len(left[first].shared_positions(left[second])[0]) for first, second in _pairs_of_arms(left)]
    fewest = min(pairs, default=min((len(each.seeds) for each in left.values()), default=0))
    beaten: dict[str, Beaten] = {}
    if fewest >= FEWEST_PAIRS:
        for criterion in CRITERIA:
            result = _beaten(left, criterion)
            beaten |= result
            left = {arm: each for arm, each in left.items() if arm not in result}
    undecided: dict[tuple[str, str], Undecided] = {}
    for criterion in CRITERIA:
        if (open_difference := _undecided(left, criterion)) is not None:
            # One measure of a pair is enough to say: what decides sooner comes first.
            undecided.setdefault((open_difference.first, open_difference.second), open_difference)
    return Choice(
        tuple(left),
        fewest,
        refused,
        beaten,
        tuple(undecided.values()),
        _same(left),
        len(left) > 1 and fewest < FEWEST_PAIRS,
    )


def _refusal(group: pd.DataFrame) -> str:
    """Return why an arm cannot be chosen; "" if it can."""
    if is_mistake(str(group["alternative"].iloc[0]), str(group["alternative_options"].iloc[0])):
        return "mistake"
    spending = spending_of(group)
    if spending is not None and not spending.keeps:
        return "past its budget"
    if spending is not None and spending.any_ended and not group["answered_in_time"].any():
        return "ended by its budget"
    outcomes = group["outcome"].astype("str")
    if outcomes.isin(ENDED_UNANSWERED).all():
        return "interrupted" if (outcomes == "interrupted").all() else "failed"
    count = int(overran(group).sum())
    # All of the runs, or surely more of them than one in twenty.
    if count == len(group) or share_interval(count, len(group)).low > _OVERRUNS_ALLOWED:
        return "late"
    return ""


def _pairs_of_arms(arms: Mapping[str, _Arm]) -> list[tuple[str, str]]:
    return list(itertools.combinations(arms, 2))


def _beaten(arms: Mapping[str, _Arm], criterion: Criterion) -> dict[str, Beaten]:
    """Return the arms that another one beats by more than the margin, corrected for all comparisons of an arm."""
    result: dict[str, Beaten] = {}
    for arm in arms:
        rivals = [
            (rival, _difference(arms[rival], arms[arm], criterion, _confidence(arms))) for rival in arms if rival != arm
        ]
        shown = [(rival, by.interval) for rival, by in rivals if by is not None and by.interval.low > criterion.margin]
        if shown:
            rival, by = max(shown, key=lambda each: each[1].low)
            result[arm] = Beaten(rival, criterion, by)
    return result


@dataclass(frozen=True)
class _Difference:
    """first − second over shared seeds, with the sign turned so that more is better. deviation: of one pair."""

    interval: Interval
    deviation: float

    def negated(self) -> _Difference:
        by = self.interval
        return _Difference(Interval(-by.estimate, -by.high, -by.low, by.confidence, by.method, by.n), self.deviation)


def _difference(first: _Arm, second: _Arm, criterion: Criterion, confidence: float) -> _Difference | None:
    """Return by how much the first arm is better; None if the measure is not known for every run."""
    mine, theirs = first.shared_positions(second)
    one = criterion.better * first.values[criterion.name][mine]
    other = criterion.better * second.values[criterion.name][theirs]
    if len(mine) < 2 or np.isnan(one).any() or np.isnan(other).any():
        return None
    if few_differ(one - other):
        interval = adjusted_paired_interval(one - other, float(np.ptp(np.concatenate((one, other)))), confidence)
    else:
        interval = student_interval(one - other, confidence)
    return _Difference(interval, float(np.std(one - other, ddof=1)))


def _undecided(arms: Mapping[str, _Arm], criterion: Criterion) -> Undecided | None:
    """Return the largest difference among the arms that is shown neither to matter nor to be negligible."""
    result = []
    for first, second in _pairs_of_arms(arms):
        difference = _difference(arms[first], arms[second], criterion, _confidence(arms))
        if difference is None or not difference.interval.estimate:
            # No difference was seen at all: there is nothing to settle by this measure.
            continue
        if difference.interval.estimate < 0:
            first, second, difference = second, first, difference.negated()
        if difference.interval.high > criterion.margin:
            more = _more_runs(difference, criterion.margin)
            result.append(Undecided(first, second, criterion, difference.interval, more))
    return max(result, key=lambda each: each.better_by.estimate, default=None)


def _confidence(arms: Mapping[str, _Arm]) -> float:
    """Return the confidence of one comparison, so that all of an arm's hold together (Bonferroni)."""
    return 1.0 - (1.0 - _CONFIDENCE) / max(1, len(arms) - 1)


def _more_runs(difference: _Difference, margin: float) -> float:
    """Return how many more runs would show the difference to be above the margin, or below it."""
    by = difference.interval
    from_margin = abs(by.estimate - margin)
    if from_margin == 0.0 or math.isinf(by.high):
        return math.inf
    quantiles = float(stats.norm.ppf(0.5 + by.confidence / 2)) + float(stats.norm.ppf(_POWER))
    return float(max(1, math.ceil((quantiles * difference.deviation / from_margin) ** 2) - by.n))


def _same(arms: Mapping[str, _Arm]) -> tuple[tuple[str, ...], ...]:
    """Return groups of two or more arms whose runs all had the same outcomes and measures."""
    groups: list[list[str]] = []
    for arm in arms:
        for group in groups:
            if _are_equal(arms[group[0]], arms[arm]):
                group.append(arm)
                break
        else:
            groups.append([arm])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _are_equal(first: _Arm, second: _Arm) -> bool:
    if not np.array_equal(first.seeds, second.seeds) or not np.array_equal(first.outcomes, second.outcomes):
        return False
    return all(
        np.allclose(values, second.values[name], rtol=0, atol=1e-9, equal_nan=True)
        for name, values in first.values.items()
    )
