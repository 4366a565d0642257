from __future__ import annotations

import math

import numpy as np
import pytest
from made_up_findings import ended
from sample_runs import concatenated
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.differences import (
    column_values,
    mean_difference,
    paired_by_seed,
    paired_mean_difference,
    sign_flip_tests,
    values_of,
)

RNG = np.random.default_rng(4)
LATENCY_S = RNG.lognormal(2.0, 0.8, 40)
SLOWER_S = LATENCY_S + RNG.exponential(0.4, 40)


# ---- means


def test_a_paired_difference_is_the_mean_of_differences_with_an_interval_for_skewed_ones():
    found = paired_mean_difference(SLOWER_S, LATENCY_S)
    assert found.interval.estimate == pytest.approx(np.mean(SLOWER_S - LATENCY_S))
    assert 0 < found.interval.low < found.interval.estimate < found.interval.high < 1
    assert found.interval.method == "Hall's skewness-adjusted t, paired"
    assert found.test == "permutation test, paired"
    assert found.p_value == pytest.approx(2 / 10_000)
    assert mean_difference(SLOWER_S, LATENCY_S).p_value > 0.5


def test_a_p_value_says_the_same_twice_and_another_seed_hardly_otherwise():
    nearly_s = LATENCY_S + RNG.normal(0.1, 0.4, 40)
    first, again, other = (paired_mean_difference(nearly_s, LATENCY_S, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.interval == other.interval
    assert first.p_value == pytest.approx(other.p_value, abs=0.02)


def test_swapping_the_arms_turns_the_sign():
    one, other = paired_mean_difference(SLOWER_S, LATENCY_S), paired_mean_difference(LATENCY_S, SLOWER_S)
    assert one.interval.estimate == -other.interval.estimate
    assert one.interval.low == pytest.approx(-other.interval.high, abs=0.01)
    assert one.p_value == other.p_value


def test_the_p_value_of_equal_differences_is_exact():
    for shift, p_value in ((0.0, 1.0), (2.0, 2 / 2**6)):
        found = paired_mean_difference(LATENCY_S[:6] + shift, LATENCY_S[:6])
        assert found.interval.estimate == pytest.approx(shift)
        assert found.p_value == pytest.approx(p_value)


def test_few_pairs_that_differ_have_an_adjusted_interval_and_it_is_named():
    first = np.zeros(40)
    first[:2] = (3.0, 5.0)
    found = paired_mean_difference(first, np.zeros(40))
    assert found.interval.method == "adjusted Student, paired, for skewness"
    assert found.p_value == pytest.approx(0.5)


def test_independent_arms_have_an_interval_as_wide_as_welchs():
    rng = np.random.default_rng(6)
    first, second = rng.normal(1.0, 1.0, 60), rng.normal(0.0, 2.0, 80)
    found = mean_difference(first, second).interval
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx((welch.low, welch.high), abs=0.06)
    assert found.n == 140


def test_samples_that_cannot_be_compared_are_refused():
    for first, second, message in (
        ([1.0, 2.0], [1.0], "second must be"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "same seeds"),
        ([1.0, math.nan], [1.0, 2.0], "first has values that are not finite"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            paired_mean_difference(first, second)


# ---- seed by seed


def test_pairs_are_the_seeds_that_both_arms_met_in_one_order():
    arms = [
        ended(("answered", 3.0), ("answered", 4.0), ("unfinished", math.nan)),
        ended(("answered", 9.0), ("answered", 7.0), alternative="unguarded", first_seed=1),
    ]
    runs = concatenated("runs", arms).sample(frac=1.0, random_state=1)
    pairs = paired_by_seed(runs, "A  cooperative", "control  unguarded")
    assert pairs.first.index.tolist() == pairs.second.index.tolist() == [1, 2]
    # Unfinished: all of the horizon of 50 s past the deadline of 10 s.
    assert [side.tolist() for side in values_of(pairs, "caller_overrun_s")] == [[0.0, 40.0], [0.0, 0.0]]
    assert [side.tolist() for side in values_of(pairs, "answered_in_time")] == [[1.0, 0.0], [1.0, 1.0]]


def test_pairs_that_cannot_be_made_are_refused():
    one, other = ended(("answered", 3.0)), ended(("answered", 3.0), alternative="unguarded", first_seed=5)
    for runs, names, message in (
        (concatenated("runs", [one, other]), ("A  cooperative", "control  unguarded"), "share no seed"),
        (concatenated("runs", [one, one]), ("A  cooperative", "A  cooperative"), "seed 0 more than once"),
        (one, ("A  cooperative", "nobody"), "choose among 'A  cooperative'"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            paired_by_seed(runs, *names)
    with pytest.raises(ConfigurationError, match="coordination_overhead_s is not known for 1 run:"):
        column_values(one, "coordination_overhead_s")
    with pytest.raises(ConfigurationError, match="no column 'recall'"):
        column_values(one, "recall")


# ---- many tests at once


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
