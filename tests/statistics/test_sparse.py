"""Intervals for means of which few values differ: coverage against simulated truth, and never without width."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from often import often

from docmind_lab.statistics.differences import mean_difference, paired_mean_difference
from docmind_lab.statistics.means import adjusted_paired_interval

Draw = Callable[[np.random.Generator, int], np.ndarray]

SIZES: dict[str, Draw] = {
    "a share": lambda rng, count: np.ones(count),
    "both ways": lambda rng, count: rng.choice([-1.0, 1.0], count),
    "recall": lambda rng, count: rng.choice([0.25, 0.5, 1.0], count),
    "skewed": lambda rng, count: rng.lognormal(0.0, 1.0, count),
}
REPEATS = 300


def _arms(rng: np.random.Generator, n: int, share: float, size: Draw) -> tuple[np.ndarray, np.ndarray]:
    """Two arms that meet the same latencies and differ in a few runs; both vary by as much as a difference can be."""
    base = rng.uniform(0.0, 10.0 if size is SIZES["skewed"] else 1.0, n)
    differences = np.zeros(n)
    count = rng.binomial(n, share)
    differences[:count] = size(rng, count)
    return base + differences, base


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("n", often([12, 20, 40, 80], 20))
def test_where_one_pair_in_twenty_differs_the_interval_covers_93_percent(n: int, name: str) -> None:
    """Trust 5: the bootstrap mean covered 35, 58, 76 and 83 % here."""
    rng = np.random.default_rng(11)
    truth = 0.05 * float(SIZES[name](rng, 200_000).mean())
    covered = 0
    for _ in range(REPEATS):
        # No resamples are drawn: the interval of few differences has a closed form, and the p value is not looked at.
        found = paired_mean_difference(*_arms(rng, n, 0.05, SIZES[name]), resamples=1).interval
        covered += found.low <= truth <= found.high
    # Binomial: below 93 % of 300 with a true coverage of 96 % is less likely than 1 in 100.
    assert covered / REPEATS >= 0.93


@pytest.mark.parametrize("n", often([12, 20, 40, 80], 20))
def test_means_with_many_zeros_in_independent_arms_are_covered_too(n: int) -> None:
    rng = np.random.default_rng(12)
    covered = 0
    for _ in range(REPEATS):
        arms = [np.where(rng.random(n) < share, rng.exponential(4.0, n), 0.0) for share in (0.10, 0.05)]
        if not any(arm.any() for arm in arms):
            covered += 1  # the bounds are infinite
            continue
        found = mean_difference(*arms, resamples=1).interval
        covered += found.low <= 0.05 * 4.0 <= found.high
    assert covered / REPEATS >= 0.93


def test_no_interval_of_a_few_runs_is_without_width() -> None:
    rng = np.random.default_rng(13)
    for n in (2, 5, 12, 40):
        base = rng.random(n)
        for first in (base, base + 2.0):
            found = paired_mean_difference(first, base).interval
            assert found.low < found.estimate < found.high


def test_bounds_are_infinite_where_no_run_differs_from_any_other() -> None:
    for found in (paired_mean_difference(np.zeros(12), np.zeros(12)), mean_difference(np.zeros(12), np.zeros(12))):
        assert (found.interval.estimate, found.p_value) == (0.0, 1.0)
        assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)
        assert found.interval.method == "none: no value differs from any other"


def test_for_shares_it_is_bonett_and_prices_interval_with_students_quantile() -> None:
    first, second = np.zeros(40), np.zeros(40)
    first[:3] = second[3] = 1.0
    found = adjusted_paired_interval(first - second, 1.0, 0.95)
    values = np.concatenate((first - second, [1.0, -1.0]))
    half = 2.019541 * values.std(ddof=1) / math.sqrt(42)  # Student, 41 degrees of freedom
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half), abs=1e-6)
