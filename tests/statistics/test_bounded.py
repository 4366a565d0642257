"""Gaffke's interval of a bounded mean, against known truth."""

import numpy as np
import pytest
from intervals import holds
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.means import bounded_mean_interval

MOST = 0.55
HEALTHY, COLLAPSED = 0.44, 0.02


@pytest.mark.parametrize("count", [8, 12, 20])
@pytest.mark.parametrize("collapsing", [0.03, 0.25, 0.5, 0.9])
def test_the_mean_of_a_healthy_and_a_collapsed_mode_is_covered_at_least_93_percent_of_the_time(count, collapsing):
    rng = np.random.default_rng([count, round(100 * collapsing)])
    truth = collapsing * COLLAPSED + (1 - collapsing) * HEALTHY
    covered = 0
    for _ in range(150):
        collapsed = rng.random(count) < collapsing
        values = np.where(collapsed, COLLAPSED, HEALTHY) + rng.uniform(-0.02, 0.02, count)
        interval = bounded_mean_interval(values, least=0.0, most=MOST)
        covered += holds(interval, truth)
        assert 0.0 <= interval.low < interval.estimate < interval.high <= MOST
    assert covered / 150 >= 0.93


def test_student_s_interval_misses_the_mean_where_one_mode_is_rare():
    rng = np.random.default_rng(1)
    truth = 0.9 * COLLAPSED + 0.1 * HEALTHY
    covered = 0
    for _ in range(300):
        values = np.where(rng.random(8) < 0.9, COLLAPSED, HEALTHY) + rng.uniform(-0.02, 0.02, 8)
        low, high = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
        covered += low <= truth <= high
    assert covered / 300 < 0.7


def test_differences_that_are_near_none_or_near_all_are_covered():
    rng = np.random.default_rng(3)
    for share in (0.05, 0.4, 0.95):
        covered = 0
        for _ in range(150):
            values = np.where(rng.random(8) < share, 0.42, 0.0) + rng.uniform(-0.02, 0.02, 8)
            covered += holds(bounded_mean_interval(values, least=-MOST, most=MOST), share * 0.42)
        assert covered / 150 >= 0.93


@pytest.mark.parametrize(("successes", "count"), [(0, 8), (3, 8), (12, 12), (5, 20)])
def test_for_values_at_the_bounds_it_is_the_exact_interval_of_a_share(successes, count):
    exact = stats.binomtest(successes, count).proportion_ci(method="exact")
    found = bounded_mean_interval([1.0] * successes + [0.0] * (count - successes), least=0.0, most=1.0)
    # A hundredth is what 10,000 draws leave open.
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=0.01)


def test_equal_values_have_an_interval_with_width():
    interval = bounded_mean_interval([0.44] * 8, least=0.0, most=MOST)
    assert interval.low < 0.3
    assert interval.high > 0.44


@pytest.mark.parametrize("values", [[], [float("nan")], [0.1, 0.6], [-0.1]])
def test_values_outside_the_bounds_are_refused(values):
    with pytest.raises(ConfigurationError, match="between least"):
        bounded_mean_interval(values, least=0.0, most=MOST)
