"""Intervals of means against known truth: skewed values, few that differ, and values between bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from intervals import holds
from often import often
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.differences import mean_difference, paired_mean_difference
from docmind_lab.statistics.interval import Interval
from docmind_lab.statistics.means import adjusted_paired_interval, bounded_mean_interval, skewed_paired_interval

Draw = Callable[[np.random.Generator, int], np.ndarray]
Case = Callable[[np.random.Generator, int], bool]
"""Draws so many runs, and returns whether their interval holds the truth."""


def skewed(draw: Draw, truth: float) -> Case:
    def case(rng: np.random.Generator, n: int) -> bool:
        values = draw(rng, n)
        return holds(skewed_paired_interval(values, float(np.ptp(values)), 0.95), truth)

    return case


MOST, HEALTHY, COLLAPSED = 0.55, 0.44, 0.02


def of_two_modes(
    rng: np.random.Generator, n: int, share: float, mode: float = COLLAPSED, other: float = HEALTHY
) -> np.ndarray:
    return np.where(rng.random(n) < share, mode, other) + rng.uniform(-0.02, 0.02, n)


def bounded(share: float) -> Case:
    def case(rng: np.random.Generator, n: int) -> bool:
        interval = bounded_mean_interval(of_two_modes(rng, n, share), least=0.0, most=MOST)
        assert 0.0 <= interval.low < interval.estimate < interval.high <= MOST
        return holds(interval, share * COLLAPSED + (1 - share) * HEALTHY)

    return case


def bounded_difference(share: float) -> Case:
    return lambda rng, n: holds(
        bounded_mean_interval(of_two_modes(rng, n, share, 0.42, 0.0), least=-MOST, most=MOST), share * 0.42
    )


def one_in_twenty(size: Draw, scale: float = 1.0) -> Case:
    """Two arms that meet the same latencies and differ in a few runs; both vary by as much as a difference can be."""
    truth = 0.05 * float(size(np.random.default_rng(11), 200_000).mean())

    def case(rng: np.random.Generator, n: int) -> bool:
        base, differences = rng.uniform(0.0, scale, n), np.zeros(n)
        count = rng.binomial(n, 0.05)
        differences[:count] = size(rng, count)
        # No resamples are drawn: the interval of few differences has a closed form, and the p value is not looked at.
        return holds(paired_mean_difference(base + differences, base, resamples=1).interval, truth)

    return case


def zeros_in_independent_arms(rng: np.random.Generator, n: int) -> bool:
    arms = [np.where(rng.random(n) < share, rng.exponential(4.0, n), 0.0) for share in (0.10, 0.05)]
    return holds(mean_difference(*arms, resamples=1).interval, 0.05 * 4.0)


# Each with the runs that are drawn, and how often.
CASES: dict[str, tuple[Case, tuple[int, ...], int]] = {
    "gamma of skewness 2": (skewed(lambda rng, n: rng.gamma(1.0, 3.0, n), 3.0), (14, 20, 40), 400),
    "gamma of skewness 3": (skewed(lambda rng, n: rng.gamma(4 / 9, 3.0, n), 4 / 3), (14, 20, 40), 400),
    "lognormal of skewness 2": (
        skewed(lambda rng, n: rng.lognormal(0.0, 0.551, n), float(np.exp(0.551**2 / 2))),
        (14, 20, 40),
        400,
    ),
    "zeros in two of five": (
        skewed(lambda rng, n: rng.gamma(1.0, 3.0, n) * (rng.random(n) < 0.6), 1.8),
        (14, 20, 40),
        400,
    ),
    "zeros in four of five": (
        skewed(lambda rng, n: rng.gamma(2.0, 3.0, n) * (rng.random(n) < 0.2), 1.2),
        (14, 20, 40),
        400,
    ),
    **{f"{share} collapse": (bounded(share), (8, 12, 20), 150) for share in (0.03, 0.25, 0.5, 0.9)},
    **{f"{share} differ, between bounds": (bounded_difference(share), (8,), 150) for share in (0.05, 0.4, 0.95)},
    # Trust 5: where one pair in twenty differs the bootstrap mean covered 35, 58, 76 and 83 %.
    "few differ: a share": (one_in_twenty(lambda rng, n: np.ones(n)), (12, 20, 40, 80), 300),
    "few differ: both ways": (one_in_twenty(lambda rng, n: rng.choice([-1.0, 1.0], n)), (12, 20, 40, 80), 300),
    "few differ: recall": (one_in_twenty(lambda rng, n: rng.choice([0.25, 0.5, 1.0], n)), (12, 20, 40, 80), 300),
    "few differ: skewed": (one_in_twenty(lambda rng, n: rng.lognormal(0.0, 1.0, n), 10.0), (12, 20, 40, 80), 300),
    "many zeros in independent arms": (zeros_in_independent_arms, (12, 20, 40, 80), 300),
}
SKEWED = {name for name in CASES if "skewness" in name or name.startswith("zeros in")}
EVERY = [(name, n) for name, (_, sizes, _) in CASES.items() for n in sizes]


ORDINARY = [(name, n) for name, n in EVERY if n == 20 or not name.startswith(("few differ", "many zeros"))]


@pytest.mark.parametrize(("name", "n"), often(EVERY, *ORDINARY))
def test_an_interval_holds_the_truth_at_least_93_percent_of_the_time(name: str, n: int) -> None:
    case, _, repeats = CASES[name]
    rng = np.random.default_rng([23, n])
    held = sum(case(rng, n) for _ in range(repeats))
    # Of skewed values 93 % but for chance, 1 in 1,000; of the others 93 % itself.
    least = stats.binom.ppf(0.001, repeats, 0.93) if name in SKEWED else 0.93 * repeats
    assert held >= least, held / repeats


def test_student_s_interval_misses_the_mean_where_one_mode_is_rare() -> None:
    rng, truth, covered = np.random.default_rng(1), 0.9 * COLLAPSED + 0.1 * HEALTHY, 0
    for _ in range(300):
        values = of_two_modes(rng, 8, 0.9)
        low, high = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
        covered += low <= truth <= high
    assert covered / 300 < 0.7


def same_intervals() -> Iterator[tuple[Interval, tuple[float, float], float]]:
    """Yield intervals with the bounds that a textbook or scipy gives, and how near they must come."""
    values = np.linspace(-3.0, 5.0, 21)
    without_skewness = stats.t.interval(0.95, 20, loc=1.0, scale=stats.sem(values))
    yield skewed_paired_interval(values, 8.0, 0.95), without_skewness, 1e-6
    # For shares it is Bonett and Price's interval with Student's quantile, 41 degrees of freedom.
    first, second = np.zeros(40), np.zeros(40)
    first[:3] = second[3] = 1.0
    more = np.concatenate((first - second, [1.0, -1.0]))
    half = 2.019541 * more.std(ddof=1) / math.sqrt(42)
    yield adjusted_paired_interval(first - second, 1.0, 0.95), (more.mean() - half, more.mean() + half), 1e-6
    for successes, count in ((0, 8), (3, 8), (12, 12), (5, 20)):
        exact = stats.binomtest(successes, count).proportion_ci(method="exact")
        at_the_bounds = [1.0] * successes + [0.0] * (count - successes)
        # A hundredth is what 10,000 draws leave open.
        yield bounded_mean_interval(at_the_bounds, least=0.0, most=1.0), (exact.low, exact.high), 0.01


def test_intervals_are_those_that_are_known_where_one_is_known() -> None:
    for interval, expected, within in same_intervals():
        assert (interval.low, interval.high) == pytest.approx(expected, abs=within)


def test_no_interval_of_a_few_runs_is_without_width() -> None:
    rng = np.random.default_rng(13)
    for n in (2, 5, 12, 40):
        base = rng.random(n)
        for first in (base, base + 2.0):
            found = paired_mean_difference(first, base).interval
            assert found.low < found.estimate < found.high
    equal = bounded_mean_interval([0.44] * 8, least=0.0, most=MOST)
    assert (equal.low < 0.3, equal.high > 0.44) == (True, True)


def test_bounds_are_infinite_where_no_run_differs_from_any_other() -> None:
    for found in (paired_mean_difference(np.zeros(12), np.zeros(12)), mean_difference(np.zeros(12), np.zeros(12))):
        assert (found.interval.estimate, found.p_value) == (0.0, 1.0)
        assert (found.interval.low, found.interval.high) == (-math.inf, math.inf)
        assert found.interval.method == "none: no value differs from any other"


@pytest.mark.parametrize("values", [[], [float("nan")], [0.1, 0.6], [-0.1]])
def test_values_outside_the_bounds_are_refused(values: list[float]) -> None:
    with pytest.raises(ConfigurationError, match="between least"):
        bounded_mean_interval(values, least=0.0, most=MOST)
