"""Intervals of skewed differences in seconds, and tests of many measures at once, with known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from docmind_lab.statistics.differences import sign_flip_tests
from docmind_lab.statistics.means import skewed_paired_interval

Draw = Callable[[np.random.Generator, int], np.ndarray]
WORLDS: dict[str, tuple[Draw, float]] = {
    "gamma of skewness 2": (lambda rng, n: rng.gamma(1.0, 3.0, n), 3.0),
    "gamma of skewness 3": (lambda rng, n: rng.gamma(4 / 9, 3.0, n), 4 / 3),
    "lognormal of skewness 2": (lambda rng, n: rng.lognormal(0.0, 0.551, n), float(np.exp(0.551**2 / 2))),
    "zeros in two of five": (lambda rng, n: rng.gamma(1.0, 3.0, n) * (rng.random(n) < 0.6), 1.8),
    "zeros in four of five": (lambda rng, n: rng.gamma(2.0, 3.0, n) * (rng.random(n) < 0.2), 1.2),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("pairs", [14, 20, 40])
def test_the_interval_of_skewed_seconds_holds_the_truth(world: str, pairs: int) -> None:
    draw, truth = WORLDS[world]
    rng, repeats = np.random.default_rng(23), 400
    intervals = [
        skewed_paired_interval(values, float(np.ptp(values)), 0.95)
        for values in (draw(rng, pairs) for _ in range(repeats))
    ]
    held = sum(each.low <= truth <= each.high for each in intervals)
    # 93 % but for chance: 1 in 1,000.
    assert held >= stats.binom.ppf(0.001, repeats, 0.93), held / repeats


def test_without_skewness_the_interval_is_students() -> None:
    values = np.linspace(-3.0, 5.0, 21)
    found = skewed_paired_interval(values, 8.0, 0.95)
    expected = stats.t.interval(0.95, 20, loc=1.0, scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)


def test_differences_of_one_sign_are_tested_as_by_the_sign_test() -> None:
    nine = np.array([*np.linspace(1.0, 9.0, 9), *np.zeros(5)])
    (p_value,), _ = sign_flip_tests([nine], [0.0], 0.05)
    assert p_value == pytest.approx(2 * 0.5**9, abs=0.002)


def test_tests_of_arms_with_equal_runs_count_once() -> None:
    nine = np.array([*np.linspace(1.0, 9.0, 9), *np.zeros(4)])
    assert sign_flip_tests([nine] * 4, [0.0] * 4, 0.05)[1] == sign_flip_tests([nine], [0.0], 0.05)[1]
    assert sign_flip_tests([nine, -nine], [0.0, 0.0], 0.05)[1] == sign_flip_tests([nine], [0.0], 0.05)[1]
    noise = [np.random.default_rng(n).normal(size=13) for n in range(4)]
    assert sign_flip_tests(noise, [0.0] * 4, 0.05)[1] < 0.03, "four tests that differ"


def test_a_difference_that_cannot_matter_is_no_test() -> None:
    noise, nine = np.full(13, 0.001), np.array([*np.linspace(1.0, 9.0, 9), *np.zeros(4)])
    p_values, level = sign_flip_tests([noise, nine], [0.05, 0.05], 0.05)
    assert p_values[0] == 1.0
    assert level == sign_flip_tests([nine], [0.05], 0.05)[1]
