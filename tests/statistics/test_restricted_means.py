from __future__ import annotations

import math

import numpy as np
import pytest
from censored_examples import LEUKAEMIA, WORKED
from made_up_arms import arm, study_runs

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, COMPETING, AnswerTimes, answer_times
from docmind_lab.statistics.completion_curves import aalen_johansen
from docmind_lab.statistics.interval import difference_of
from docmind_lab.statistics.restricted_means import (
    paired_restricted_mean_difference,
    pseudo_values,
    restricted_mean,
    restricted_means,
)


def test_a_restricted_mean_is_the_textbooks():
    """Klein and Moeschberger (2003), example 4.2: 23.287 weeks up to 35, standard error 2.827."""
    mean, variance = aalen_johansen(LEUKAEMIA).restricted_mean(35.0)
    assert mean == pytest.approx(23.287, abs=5e-4)
    assert math.sqrt(variance) == pytest.approx(2.827, abs=5e-4)


def test_time_without_an_answer_counts_until_tau_also_after_a_failure():
    # Worked by hand: steps of 1/6, 1/6 and 1/4 at 1, 3 and 5 gain 5, 3 and 1 of 6 seconds.
    mean, _ = aalen_johansen(WORKED).restricted_mean(6.0)
    assert mean == pytest.approx(6 - (5 / 6 + 3 / 6 + 1 / 4))


def test_without_censoring_it_is_a_plain_mean_with_its_variance():
    rng = np.random.default_rng(3)
    times = AnswerTimes(rng.exponential(5.0, 30), rng.choice([ANSWERED, COMPETING], 30))
    without_s = np.where(times.what == ANSWERED, np.minimum(times.at_s, 8.0), 8.0)
    mean, variance = aalen_johansen(times).restricted_mean(8.0)
    assert mean == pytest.approx(without_s.mean())
    assert variance == pytest.approx(without_s.var() / 30)
    assert pseudo_values(times, 8.0) == pytest.approx(without_s)


def test_pseudo_values_of_censored_runs_add_up_to_the_restricted_mean():
    values = pseudo_values(LEUKAEMIA, 35.0)
    assert values.mean() == pytest.approx(23.287, abs=0.05)
    assert values.std(ddof=1) / math.sqrt(21) == pytest.approx(2.827, rel=0.05)


def test_an_interval_stays_within_0_and_tau():
    for answered in range(11):
        at_s = np.where(np.arange(10) < answered, 2.0 + np.arange(10) / 10, 20.0)
        mean = restricted_mean(AnswerTimes(at_s, (at_s < 20.0).astype(int)), 20.0)
        assert 0.0 <= mean.low < mean.estimate <= mean.high <= 20.0


def test_runs_without_any_variance_still_leave_something_open():
    none = restricted_mean(AnswerTimes(np.full(40, 20.0), np.full(40, CENSORED)), 20.0)
    assert none.estimate == none.high == 20.0
    assert none.low == pytest.approx(20.0 * 40 / (40 + 1.959964**2))
    alike = restricted_mean(AnswerTimes(np.full(40, 5.0), np.full(40, ANSWERED)), 20.0)
    assert alike.low < 5.0 < alike.high
    assert "no variance seen" in alike.method


def runs_of_two_arms():
    cut = [("answered", 4.0), ("answered", 6.0), ("partial", 10.0), ("timed_out", 10.0)]
    left = [("answered", 4.0), ("answered", 6.0), ("answered", 14.0), ("unfinished", math.nan)]
    return study_runs(arm(*cut), arm(*left, alternative="unguarded"))


def test_each_arm_has_its_mean_until_the_decision_timeout():
    frame = restricted_means(runs_of_two_arms())
    assert frame["tau_s"].tolist() == [10.0, 10.0]
    assert frame["mean_s"].tolist() == pytest.approx([7.5, 7.5])
    assert frame["arm"].tolist() == ["control  unguarded", "A  cooperative"]


def test_a_limit_past_what_was_observed_is_refused_with_the_remedy():
    cut = answer_times(runs_of_two_arms().iloc[:4])
    for times, tau_s, message in ((cut, 50.0, r"tau_s is 50, .* 10 s.*no_answer"), (LEUKAEMIA, 0.0, "tau_s is 0")):
        with pytest.raises(ConfigurationError, match=message):
            restricted_mean(times, tau_s)


def test_pairs_cut_the_interval_of_a_difference_that_common_seeds_share():
    rng = np.random.default_rng(5)
    latency_s = rng.lognormal(1.5, 0.8, 40)
    first, second = (
        AnswerTimes(np.minimum(at_s, 20.0), (at_s < 20.0).astype(int))
        for at_s in (latency_s, latency_s + rng.exponential(0.5, 40))
    )
    paired = paired_restricted_mean_difference(first, second, 20.0, resamples=999)
    apart = difference_of(*(restricted_mean(times, 20.0) for times in (first, second)))
    assert paired.interval.estimate == pytest.approx(apart.estimate)
    assert paired.interval.high < 0 < apart.high
    assert paired.p_value < 0.01


def test_arms_that_answer_alike_differ_by_nothing_with_an_interval_around_it():
    times = answer_times(runs_of_two_arms().iloc[:4])
    same = paired_restricted_mean_difference(times, times, 10.0)
    assert (same.interval.estimate, same.p_value) == (0.0, 1.0)
    assert same.interval.low < 0.0 < same.interval.high
