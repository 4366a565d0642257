"""Differences between two arms, paired by seed or independent, and p values of many comparisons.

    pairs = paired_by_seed(runs, "A  cooperative", "B  hard timeout")
    paired_mean_difference(*values_of(pairs, "work_overrun_s"))       adjusted for skewness, sign-flip permutation test
    paired_share_difference(*values_of(pairs, "answered_in_time"))
    mean_difference(a, b)                                             arms with independent seeds

a, b: one number for each run, in any unit, without NaN. Arms of one seed meet the same latencies, so pairs are the
unit. Paired runs taken as independent make the interval too wide. Several runs of one seed taken as several seeds make
it too narrow.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import count_of
from docmind_lab.statistics.interval import Difference, Floats, check_confidence
from docmind_lab.statistics.means import (
    adjusted_interval,
    few_differ,
    skewed_paired_interval,
    studentised_interval,
)
from docmind_lab.tables.conditions import with_arms


@dataclass(frozen=True, eq=False)
class Pairs:
    """Runs of two arms with the same seeds: rows of `runs`, indexed by seed, in the same order."""

    first: pd.DataFrame
    second: pd.DataFrame


def paired_by_seed(runs: pd.DataFrame, first: str, second: str) -> Pairs:
    """Return the runs of two arms over the seeds that both have, ascending.

    runs: of one condition. first, second: arms as `conditions.with_arms` calls them.
    Raises: ConfigurationError for an unknown arm, a seed twice in an arm, or no seed in common.
    """
    named = runs if "arm" in runs else with_arms(runs)
    sides = []
    for name in (first, second):
        side = named[named["arm"] == name].set_index("seed").sort_index()
        if side.empty:
            raise ConfigurationError(
                f"no arm is called {name!r}: choose among {', '.join(map(repr, named['arm'].unique()))}"
            )
        if side.index.has_duplicates:
            twice = side.index[side.index.duplicated()][0]
            raise ConfigurationError(f"{name!r} met seed {twice} more than once: keep one run of each seed")
        sides.append(side)
    both = sides[0].index.intersection(sides[1].index)
    if both.empty:
        raise ConfigurationError(f"{first!r} and {second!r} share no seed: compare them as independent arms")
    return Pairs(sides[0].loc[both], sides[1].loc[both])


def values_of(pairs: Pairs, column: str) -> tuple[Floats, Floats]:
    """Return a column of both sides as numbers, booleans as 0 and 1; see `column_values`."""
    return column_values(pairs.first, column), column_values(pairs.second, column)


def column_values(runs: pd.DataFrame, column: str) -> Floats:
    """Return a column of `runs` as numbers, one for each run: none is left out.

    An unfinished run counts in caller_overrun_s with all of its horizon past the deadline, a lower bound.
    Raises: ConfigurationError for a column that is not there, or a number that is not known (as what a live endpoint's
    server did).
    """
    if column not in runs:
        raise ConfigurationError(f"runs has no column {column!r}: see docs/data-dictionary.md")
    values = runs[column].to_numpy(dtype="float64", na_value=np.nan)
    if column == "caller_overrun_s":
        beyond_s = (runs["horizon_s"] - runs["decision_timeout_s"]).to_numpy(dtype="float64")
        values = np.where(np.isnan(values), beyond_s, values)
    if np.isnan(values).any():
        raise ConfigurationError(
            f"{column} is not known for {count_of(int(np.isnan(values).sum()), 'run')}: choose another column"
        )
    return values


# Permutations are drawn in portions of so many numbers, which bounds the memory for large studies.
_NUMBERS_AT_ONCE = 2_000_000


def paired_mean_difference(
    first: ArrayLike, second: ArrayLike, confidence: float = 0.95, *, seed: int = 0, resamples: int = 9999
) -> Difference:
    """Return the mean of first − second over seeds, with `means.skewed_paired_interval`; deterministic for a seed.

    The interval holds the truth at least 93 % of the time from 12 pairs on, also of skewed differences. Where fewer
    than ten pairs differ from the others it is never without width; its bounds are infinite where no run of either arm
    differs from any other.
    p: `scipy.stats.permutation_test`, signs of the differences flipped, exact for few pairs.
    Raises: ConfigurationError for fewer than two pairs, a NaN, or samples of two lengths.
    """
    differences = _paired_differences(first, second)
    spread = float(np.ptp(np.concatenate((np.asarray(first, dtype="float64"), np.asarray(second, dtype="float64")))))
    interval = skewed_paired_interval(differences, spread, check_confidence(confidence))
    p_value, test = mean_p_value(differences, np.zeros_like(differences), paired=True, seed=seed, resamples=resamples)
    return Difference(interval, p_value, test)


def mean_difference(
    first: ArrayLike, second: ArrayLike, confidence: float = 0.95, *, seed: int = 0, resamples: int = 9999
) -> Difference:
    """Return mean(first) − mean(second) of two arms with independent seeds; deterministic for a seed.

    Studentised bootstrap with Welch's standard error, or `means.adjusted_interval` where fewer than ten values of an
    arm differ from the others; p: `scipy.stats.permutation_test`, runs exchanged between arms.
    Raises: ConfigurationError for an arm of fewer than two runs, or a NaN.
    """
    arms = _sample(first, "first"), _sample(second, "second")
    if any(few_differ(arm) for arm in arms):
        interval = adjusted_interval(arms[0], arms[1], check_confidence(confidence))
    else:
        interval = studentised_interval(*arms, check_confidence(confidence), seed, resamples)
    return Difference(interval, *mean_p_value(*arms, paired=False, seed=seed, resamples=resamples))


def mean_p_value(
    first: Floats, second: Floats, *, paired: bool, seed: int = 0, resamples: int = 9999
) -> tuple[float, str]:
    """Return the two-sided p value of a permutation test of a difference of means, and the test's name."""
    name = "permutation test, paired" if paired else "permutation test"
    if paired:
        # A pair without a difference has no sign to flip: to leave it out is the same test, sooner exact.
        differing = first != second
        first, second = first[differing], second[differing]
    if len(first) < 1 or (not paired and np.ptp(np.concatenate((first, second))) == 0.0):
        return 1.0, name
    if paired and len(first) == 1:
        return 1.0, name
    result = stats.permutation_test(
        (first, second),
        lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis),
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _NUMBERS_AT_ONCE // (len(first) + len(second))),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue), name


# More than 13 pairs have more sign flips than this, and so many are drawn.
_FLIPS: Final = 9_999


def sign_flip_tests(differences: Sequence[Floats], margins: Sequence[float], level: float) -> tuple[Floats, float]:
    """Return two-sided p values of many paired tests at once, and the level that holds for all of them together.

    Each test is the permutation test of a mean difference: under two arms that are alike, each difference may as well
    have the other sign. Where all of them have one sign, it is the sign test. The signs are flipped seed by seed for
    all tests at once, so that the level allows for how they hang together: tests of arms with equal runs count once.
    It is the p value that the least of all tests stays above with a probability of 1 − level, or Bonferroni's if that
    is larger. With up to 13 seeds all flips are used; otherwise they are drawn, always the same.

    differences: for each test one number for each seed, 0 where the seed is not in it; all of one length. margins: for
    each test, a mean difference that does not matter. One that cannot exceed it is no test. level: significance level
    of all tests together, as 0.05. Source: Westfall and Young (1993), Resampling-Based Multiple Testing, section 2.3
    (single-step minP).
    """
    p_values = np.ones(len(differences))
    tests = [i for i, (each, margin) in enumerate(zip(differences, margins, strict=True)) if _can_matter(each, margin)]
    if not tests:
        return p_values, level
    columns = np.stack([differences[i] / np.abs(differences[i]).max() for i in tests], axis=1).round(9)
    # A − B and B − A are one test.
    columns *= np.sign(columns[(columns != 0).argmax(axis=0), np.arange(len(tests))])
    columns, places = np.unique(columns, axis=1, return_inverse=True)
    sums = np.abs(_signs(len(columns)) @ columns).round(7)
    least = np.ones(len(sums))
    observed = np.empty(columns.shape[1])
    for place, column in enumerate(sums.T):
        order = np.argsort(column)
        at_least = np.empty(len(column))
        at_least[order] = 1.0 - np.searchsorted(column[order], column[order]) / len(column)
        observed[place] = at_least[0]
        least = np.minimum(least, at_least)
    p_values[tests] = observed[places.ravel()]
    ordered = np.sort(least)
    # The largest value that at most a share `level` of all flips have at least one test at or below.
    allowed = int(level * len(ordered))
    below = ordered[:allowed][ordered[:allowed] < ordered[allowed]]
    joint = float(below[-1]) if len(below) else 0.0
    return p_values, max(joint, level / columns.shape[1])


def _can_matter(differences: Floats, margin: float) -> bool:
    sizes = np.abs(differences)
    return bool(sizes.any() and sizes.sum() > margin * np.count_nonzero(sizes))


@functools.lru_cache(maxsize=8)
def _signs(seeds: int) -> Floats:
    """Return rows of signs, the first without a flip."""
    if 2**seeds <= _FLIPS:
        rows = np.array(list(itertools.product((1.0, -1.0), repeat=seeds)))
    else:
        rows = np.random.default_rng(0).choice((1.0, -1.0), (_FLIPS + 1, seeds))
        rows[0] = 1.0
    return rows


def _paired_differences(first: ArrayLike, second: ArrayLike) -> Floats:
    a, b = _sample(first, "first"), _sample(second, "second")
    if len(a) != len(b):
        raise ConfigurationError(f"first has {len(a)} runs and second {len(b)}: pass the same seeds in the same order")
    return a - b


def _sample(values: ArrayLike, name: str) -> Floats:
    sample = np.asarray(values, dtype="float64")
    if sample.ndim != 1 or len(sample) < 2:
        raise ConfigurationError(f"{name} must be one number for each of at least two runs")
    if not np.isfinite(sample).all():
        raise ConfigurationError(f"{name} has values that are not finite: give each run a number, or compare shares")
    return sample


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p values, in the order given: rejecting below 5 % errs at all in at most 5 % of studies.

    The k-th smallest of m is taken times m − k + 1, and is no smaller than those before it. It holds however the tests
    depend on each other. Source: Holm (1979), Scandinavian Journal of Statistics 6:65.
    Raises: ConfigurationError for a value that is no p value.
    """
    values = _check_p_values(p_values)
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted


def tarone(p_values: ArrayLike, least: ArrayLike, level: float) -> Floats:
    """Return Tarone's adjusted p values: Bonferroni over the tests that could reject at all, in the order given.

    A test of few runs has a least p value that no data can go below. Tests whose least p value is too large for the
    level cannot err, so the others need no correction for them; with ten pairs and 28 tests nothing could ever be
    shown otherwise.

    least: the least p value that each test can have with as many runs, or discordant pairs, as it has. level:
    significance level of all tests together, as 0.05. The adjusted values are for this level alone. Source: Tarone
    (1990), Biometrics 46:515. Raises: ConfigurationError for a value that is no p value.
    """
    values, reachable = _check_p_values(p_values), _check_p_values(least)
    count = next((k for k in range(1, len(values) + 1) if (reachable <= level / k).sum() <= k), 1)
    adjusted: Floats = np.where(reachable <= level / count, np.minimum(1.0, values * count), 1.0)
    return adjusted


def _check_p_values(p_values: ArrayLike) -> Floats:
    values = np.asarray(p_values, dtype="float64")
    if values.ndim != 1 or not len(values) or not ((values >= 0.0) & (values <= 1.0)).all():
        raise ConfigurationError("p_values must be at least one number, each from 0 to 1")
    return values
