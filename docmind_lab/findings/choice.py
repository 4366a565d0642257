"""Chooses among the arms of one condition by differences that are paired seed by seed.

    choice = choose(runs)
    choice.chosen          # arms that no other arm was shown to beat
    choice.beaten          # arm → which arm beats it, by which measure, with the interval of the difference
    choice.undecided       # differences among the chosen that these runs do not settle, and how many runs would

The rule: an arm is out if it fails a requirement (a documented mistake, every run failed, the deadline not held, past
its budget), or if another arm is shown to do better in a measure by more than a margin that matters. The measures
are taken in the order of `CRITERIA`, each over the arms that are left: callers first, then answers, then what callers
were given, then the work after the deadline.

Better is shown in two steps. A sign-flip test says that the difference is no chance, over all pairs of arms and all
measures together; it is exact where arms are alike. Then either no run is worse and so many are better (for these, the
test is the sign test), or the interval of the mean difference lies beyond the margin. A difference in seconds must also
exceed what an event could cost that these runs are likely to have missed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from docmind_lab.core.alternative_catalogue import is_mistake
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import ENDED_UNANSWERED
from docmind_lab.core.text import join_names, one_line, percent
from docmind_lab.findings.criteria import CRITERIA, Beaten, Criterion, Undecided, gave_something, overran
from docmind_lab.findings.endings import went_past_budget
from docmind_lab.statistics.differences import sign_flip_tests
from docmind_lab.statistics.interval import Floats, Interval
from docmind_lab.statistics.means import skewed_paired_interval
from docmind_lab.statistics.shares import share_interval, share_of_unseen
from docmind_lab.tables.conditions import CONTROL, with_arms

HELD: Final = f"within {HELD_WITHIN_S * 1000:.0f} ms of the deadline"
"""When a caller is back that the deadline holds for."""
FEWEST_PAIRS: Final = 12
"""The fewest pairs of runs with which arms are compared: the intervals are tested from 12 pairs on."""

_CONFIDENCE: Final = 0.95
# Chance that as many more runs as are named do tell two arms apart, if the difference stays what it is.
_POWER: Final = 0.8
# A difference in seconds counts if these runs show an event that would outweigh it with at least this probability. With
# 95 % instead, a second in each of 80 runs would decide nothing. What an event could cost at 95 % is said beside it.
_LIKELY: Final = 0.6
# An arm whose overruns are surely more frequent than this does not hold the deadline, whatever the others do.
_OVERRUNS_ALLOWED: Final = 0.05
# So many runs that are all worse are a sight; by chance alone a pair shows it in one of 32 studies.
_SEEN_RUNS: Final = 5
# Differences of so little are those of adding up in another order.
_ROUNDING: Final = 1e-9


ENDED: Final = {
    "failed": "every run{} failed",
    "interrupted": "every run{} stopped at an interrupt",
    "past its budget": "runs{} went past a budget that is only measured there",
}
"""Why an arm cannot be chosen that ended by itself, with a place for its name."""
_REFUSED: Final = {
    "mistake": "Never recommended, as documented mistakes",
    **{reason: f"Not chosen, because {words.format('')}" for reason, words in ENDED.items()},
    "late": f"Not chosen, because callers were not back {HELD}",
}
_BY_NAME: Final = {each.name: each for each in CRITERIA}


@dataclass(frozen=True)
class Choice:
    """The arms to choose from in one condition, and the evidence.

    chosen: arms that no other arm was shown to beat, in the order of every figure; empty if none is left. runs: pairs
    that the comparison rests on; the fewest of any two arms. refused: arm → why it cannot be chosen, whatever the
    others do. beaten: arm → what beat it. seen_worse: chosen arm → another one that was better in this many runs, and
    in none worse by any measure. It is not shown to be better, but nothing speaks for the arm. undecided: for each
    measure, the largest open difference between chosen arms; one for two arms. same: groups of chosen arms with the
    same outcome and the same value of every measure in every run. too_few: whether there are fewer runs than any choice
    needs.
    """

    chosen: tuple[str, ...]
    runs: int
    refused: Mapping[str, str]
    beaten: Mapping[str, Beaten]
    seen_worse: Mapping[str, tuple[str, int]]
    undecided: tuple[Undecided, ...]
    same: tuple[tuple[str, ...], ...]
    too_few: bool

    @property
    def preferred(self) -> tuple[str, ...]:
        """The arms to name first: those of the chosen that are not in `seen_worse`."""
        return tuple(arm for arm in self.chosen if arm not in self.seen_worse) or self.chosen

    def evidence(self) -> Iterator[str]:
        """Yield why the other arms are not chosen, with intervals."""
        if self.beaten:
            worse = "; ".join(f"{one_line(arm)} ({by.text()})" for arm, by in self.beaten.items())
            yield (
                f"Not chosen, by paired differences with intervals (95 % for all pairs and measures together): {worse}."
            )
        most = max((by.unseen for by in self.beaten.values()), default=0.0)
        if most:
            yield (
                f"An event that no run showed, in up to {percent(share_of_unseen(self.runs))} of runs, could still "
                f"cost the better alternative up to {most:.2f} s a run."
            )
        if not self.too_few and self.seen_worse:
            seen = [
                f"{one_line(arm)} (worse than {one_line(than)} in {count} of {self.runs} runs)"
                for arm, (than, count) in self.seen_worse.items()
            ]
            yield f"Never better in these runs, and not ruled out by them: {'; '.join(seen)}."
        for reason, words in _REFUSED.items():
            arms = [one_line(arm) for arm, why in self.refused.items() if why == reason and CONTROL not in arm]
            if arms:
                yield f"{words}: {join_names(arms)}."


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


@dataclass(frozen=True, eq=False)
class _Difference:
    """By how much the first arm is better than the second in each run, with the sign turned so that more is better.

    values: over the seeds of both, in the unit of the measure. spread: the range of both arms' values. p_value: of the
    sign-flip test. level: p values up to it are evidence, over all pairs and measures. largest: what one event could
    cost at most, in the measure's unit; 0 where the measure is a share.
    """

    criterion: Criterion
    values: Floats
    spread: float
    p_value: float
    level: float
    largest: float

    @functools.cached_property
    def interval(self) -> Interval:
        by = skewed_paired_interval(self.values, self.spread, 1.0 - self.level)
        # A share, or a mean of shares, cannot differ by more than 1.
        return by if self.criterion.unit else dataclasses.replace(by, low=max(-1.0, by.low), high=min(1.0, by.high))

    @functools.cached_property
    def estimate(self) -> float:
        return float(self.values.mean())

    @functools.cached_property
    def runs_better(self) -> int:
        return int((self.values > self.criterion.margin + _ROUNDING).sum())

    @functools.cached_property
    def runs_worse(self) -> int:
        return int((self.values < -self.criterion.margin - _ROUNDING).sum())

    @property
    def dominates(self) -> bool:
        """Whether the first arm is better in some run and worse in none."""
        return self.runs_better > 0 and not self.runs_worse

    @property
    def is_no_chance(self) -> bool:
        """Whether the first arm is better by more than the margin, in the runs as they are."""
        beyond = self.estimate > self.criterion.margin and self.p_value <= self.level
        return beyond and (self.dominates or self.interval.low > self.criterion.margin)

    @property
    def unseen(self) -> float:
        """What an event that these runs did not show could cost on average, at 95 % confidence."""
        return self.largest * share_of_unseen(len(self.values), _CONFIDENCE)

    @property
    def is_shown(self) -> bool:
        """Whether the first arm is shown to be better, and an event that would outweigh it be likely to show."""
        rare = self.largest * share_of_unseen(len(self.values), _LIKELY)
        return self.is_no_chance and self.estimate - rare > self.criterion.margin


def choose(runs: pd.DataFrame) -> Choice:
    """Choose among the arms of one condition by paired evidence.

    runs: rows of `runs` of one condition. Arms are compared over the seeds that both met.
    """
    named = with_arms(runs)
    arms = {str(arm): group for arm, group in named.groupby("arm", observed=True, sort=True)}
    refused = {arm: reason for arm, group in arms.items() if (reason := _refusal(group))}
    if not any(gave_something(arms[arm]).any() for arm in arms if arm not in refused):
        # Beside runs that only timed out, one that failed by itself is no worse: neither caller has an answer.
        timed_out = [arm for arm in arms if arm not in refused]
        refused = {arm: why for arm, why in refused.items() if not timed_out or why not in ENDED_UNANSWERED}
    held = {arm: _Arm.of(group) for arm, group in arms.items() if arm not in refused}
    differences = _differences(held, runs)
    pairs = [len(np.intersect1d(held[a].seeds, held[b].seeds)) for a, b in itertools.combinations(held, 2)]
    fewest = min(pairs, default=min((len(each.seeds) for each in held.values()), default=0))
    left = list(held)
    beaten: dict[str, Beaten] = {}
    if fewest >= FEWEST_PAIRS:
        for criterion in CRITERIA:
            result = _beaten_arms(left, differences, criterion)
            beaten |= result
            left = [arm for arm in left if arm not in result]
    undecided: dict[tuple[str, str], Undecided] = {}
    for criterion in CRITERIA:
        if (open_difference := _largest_undecided(left, differences, criterion)) is not None:
            # One measure of a pair is enough to say: what decides sooner comes first.
            undecided.setdefault((open_difference.first, open_difference.second), open_difference)
    return Choice(
        tuple(left),
        fewest,
        refused,
        beaten,
        _seen_worse(left, differences),
        tuple(undecided.values()),
        _same({arm: held[arm] for arm in left}),
        len(left) > 1 and fewest < FEWEST_PAIRS,
    )


def _refusal(group: pd.DataFrame) -> str:
    """Return why an arm cannot be chosen; "" if it can."""
    if is_mistake(str(group["alternative"].iloc[0]), str(group["alternative_options"].iloc[0])):
        return "mistake"
    if went_past_budget(group).any():
        return "past its budget"
    outcomes = group["outcome"].astype("str")
    if outcomes.isin(ENDED_UNANSWERED).all():
        return "interrupted" if (outcomes == "interrupted").all() else "failed"
    count = int(overran(group).sum())
    # All of the runs, or surely more of them than one in twenty.
    if count == len(group) or share_interval(count, len(group)).low > _OVERRUNS_ALLOWED:
        return "late"
    return ""


_Differences = Mapping[tuple[str, str, str], _Difference]


def _differences(arms: Mapping[str, _Arm], runs: pd.DataFrame) -> _Differences:
    """Return the difference of each two arms, both ways, in each measure that is known for all of their runs."""
    seeds = np.unique(np.concatenate([each.seeds for each in arms.values()])) if arms else np.empty(0)
    values: dict[tuple[str, str, str], Floats] = {}
    flippable: dict[tuple[str, str, str], Floats] = {}
    for (first, one), (second, other) in itertools.combinations(arms.items(), 2):
        shared, mine, theirs = np.intersect1d(one.seeds, other.seeds, return_indices=True)
        for criterion in CRITERIA:
            both = [one.values[criterion.name][mine], other.values[criterion.name][theirs]]
            if len(shared) < 2 or np.isnan(both).any():
                continue
            key = (first, second, criterion.name)
            values[key] = np.stack(both)
            flippable[key] = np.zeros(len(seeds))
            flippable[key][np.searchsorted(seeds, shared)] = both[0] - both[1]
    margins = [_BY_NAME[name].margin for _, _, name in values]
    p_values, level = sign_flip_tests(list(flippable.values()), margins, 1.0 - _CONFIDENCE)
    largest = {each.name: _largest_cost(each, runs) for each in CRITERIA}
    result = {}
    for ((first, second, name), known), p_value in zip(values.items(), p_values, strict=True):
        criterion = _BY_NAME[name]
        by = criterion.better * (known[0] - known[1])
        one_way = _Difference(criterion, by, float(np.ptp(known)), float(p_value), level, largest[name])
        result[first, second, name] = one_way
        result[second, first, name] = dataclasses.replace(one_way, values=-by)
    return result


def _largest_cost(criterion: Criterion, runs: pd.DataFrame) -> float:
    """Return what one event could cost an arm at most, in the measure's unit; 0 for a share, which has bounds.

    It costs no more than the run without a deadline, or any other, was seen to cost; without that run, no more than
    observation lasts.
    """
    if not criterion.unit:
        return 0.0
    values = criterion.values(runs)
    largest = 0.0 if values.isna().all() else float(values.max())
    if not (runs["alternative"].astype("str") == CONTROL).any():
        largest = max(largest, float((runs["horizon_s"] - runs["decision_timeout_s"]).max()))
    return largest


def _beaten_arms(arms: Sequence[str], differences: _Differences, criterion: Criterion) -> dict[str, Beaten]:
    """Return the arms that another one is shown to beat in this measure."""
    result: dict[str, Beaten] = {}
    for arm in arms:
        rivals = [(rival, differences.get((rival, arm, criterion.name))) for rival in arms if rival != arm]
        winners = [(rival, by) for rival, by in rivals if by is not None and by.is_shown]
        if winners:
            rival, by = max(winners, key=lambda each: each[1].interval.low)
            result[arm] = Beaten(rival, criterion, by.interval, by.runs_better, by.runs_worse, by.unseen)
    return result


def _seen_worse(arms: Sequence[str], differences: _Differences) -> dict[str, tuple[str, int]]:
    """Return the arms than which another one is better in some run and worse in none, by any measure."""
    result: dict[str, tuple[str, int]] = {}
    for rival, arm in itertools.permutations(arms, 2):
        each = [differences[rival, arm, name] for name in _BY_NAME if (rival, arm, name) in differences]
        better = max((by.runs_better for by in each if by.estimate > by.criterion.margin), default=0)
        if better > max(_SEEN_RUNS - 1, result.get(arm, ("", 0))[1]) and not any(by.runs_worse for by in each):
            result[arm] = rival, better
    return result


def _largest_undecided(arms: Sequence[str], differences: _Differences, criterion: Criterion) -> Undecided | None:
    """Return the largest difference among the arms that is shown neither to matter nor to be negligible."""
    result = []
    for first, second in itertools.permutations(arms, 2):
        by = differences.get((first, second, criterion.name))
        if by is None or by.estimate <= 0 or by.interval.high <= criterion.margin:
            # No difference was seen at all, or none that matters: there is nothing to settle by this measure.
            continue
        unseen = by.unseen if by.is_no_chance else 0.0
        result.append(Undecided(first, second, criterion, by.interval, _more_runs(by), unseen))
    return max(result, key=lambda each: each.better_by.estimate, default=None)


def _more_runs(by: _Difference) -> float:
    """Return how many more runs would show the difference to be above the margin, or below it."""
    from_margin = abs(by.estimate - by.criterion.margin)
    if from_margin == 0.0 or math.isinf(by.interval.high):
        return math.inf
    quantiles = float(stats.norm.ppf(1.0 - by.level / 2)) + float(stats.norm.ppf(_POWER))
    needed = (quantiles * float(by.values.std(ddof=1)) / from_margin) ** 2
    if by.estimate > by.criterion.margin and by.largest > from_margin:
        # As many as would likely show an event that costs more than the difference.
        needed = max(needed, math.log(1.0 - _LIKELY) / math.log(1.0 - from_margin / by.largest))
    return float(max(1, math.ceil(max(needed, FEWEST_PAIRS)) - len(by.values)))


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
