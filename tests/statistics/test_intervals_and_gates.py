from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.differences import holm, tarone
from docmind_lab.statistics.interval import Interval, difference_of
from docmind_lab.statistics.sample_size import TooFewRuns, gated_quantile, runs_needed
from docmind_lab.statistics.shares import (
    is_share_below,
    paired_share_difference,
    runs_needed_for_share,
    share_difference,
    share_interval,
)


def test_an_interval_is_text_with_its_estimate_and_bounds():
    assert str(Interval(0.93, 0.81, 0.98, 0.95, "Wilson", 40)) == "0.93 [0.81, 0.98]"
    assert Interval(6.21, 5.14, math.inf, 0.95, "x", 90).text(1, "s") == "6.2 s [5.1, ∞]"


# ---- shares


def test_a_wilson_interval_is_that_of_the_textbook():
    """Newcombe (1998), Statistics in Medicine 17:857, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29, method 3."""
    for successes, runs, low, high in ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)):
        found = share_interval(successes, runs)
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_the_target_of_95_percent_needs_73_runs_and_not_one_less():
    assert runs_needed_for_share(0.95) == 73
    for target in (0.5, 0.8, 0.9, 0.95, 0.99):
        needed = runs_needed_for_share(target)
        lows = [share_interval(runs, runs).low for runs in (needed, needed - 1)]
        assert lows[0] >= target > lows[1]


@pytest.mark.parametrize("limit", [0.5, 0.9, 0.95, 0.99])
def test_a_share_at_the_limit_is_called_below_it_in_one_of_forty_cases_at_most(limit):
    for runs in (1, 2, 3, 4, 10, 40):
        chances = stats.binom.pmf(range(runs + 1), runs, limit)
        wrong = sum(chance for hits, chance in enumerate(chances) if is_share_below(hits, runs, limit))
        assert wrong <= 0.025


def test_a_difference_of_independent_shares_is_newcombes():
    """Newcombe (1998), Statistics in Medicine 17:873, table II, method 10: 56/70 − 48/80 and 9/10 − 3/10."""
    first, second = np.arange(70) < 56, np.arange(80) < 48
    found = share_difference(first, second).interval
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=6e-5)
    found = share_difference(np.arange(10) < 9, np.arange(10) < 3).interval
    assert (found.low, found.high) == pytest.approx((0.1705, 0.8090), abs=6e-5)


def test_a_paired_share_difference_tests_discordant_pairs_alone():
    first = np.array([True] * 30 + [True] * 9 + [False] * 1)
    second = np.array([True] * 30 + [False] * 9 + [True] * 1)
    found = paired_share_difference(first, second)
    assert found.interval.estimate == pytest.approx(0.2)
    assert found.p_value == pytest.approx(stats.binomtest(9, 10).pvalue)
    assert found.p_value == pytest.approx(22 / 1024)
    # Bonett and Price: 10 / 42 and 2 / 42, standard error sqrt((12 / 42 − (8 / 42)²) / 42).
    half = 1.959964 * math.sqrt((12 / 42 - (8 / 42) ** 2) / 42)
    assert (found.interval.low, found.interval.high) == pytest.approx((8 / 42 - half, 8 / 42 + half))


def test_shares_that_agree_in_every_pair_still_leave_something_open():
    found = paired_share_difference([True] * 40, [True] * 40)
    assert (found.interval.estimate, found.p_value) == (0.0, 1.0)
    assert -0.1 < found.interval.low < 0 < found.interval.high < 0.1


def test_what_is_no_share_is_refused():
    for call in (
        lambda: share_interval(1, 0),
        lambda: share_interval(3, 2),
        lambda: share_interval(1, 2, confidence=1.0),
        lambda: runs_needed_for_share(1.0),
        lambda: paired_share_difference([True], [True, False]),
        lambda: paired_share_difference([0.5], [1.0]),
        lambda: difference_of(share_interval(1, 2), share_interval(1, 2, 0.9)),
    ):
        with pytest.raises(ConfigurationError):
            call()


# ---- quantiles


def test_the_gate_asks_for_as_many_runs_as_loadgen():
    assert [runs_needed(quantile) for quantile in (0.5, 0.9, 0.95, 0.99)] == [7, 44, 90, 459]
    assert runs_needed(0.1) == runs_needed(0.9)
    assert 0.95**90 <= 0.01 < 0.95**89


def test_one_run_too_few_gives_no_number_but_says_how_many_are_missing():
    refused = gated_quantile(np.arange(89.0), 0.95)
    assert refused == TooFewRuns(0.95, runs=89, needed=90)
    assert str(refused) == "p95 needs 90 runs: 1 more"
    assert not hasattr(refused, "estimate")
    assert isinstance(gated_quantile(np.arange(90.0), 0.95), Interval)


def test_a_quantile_has_the_interval_of_scipys_quantile_test():
    values = np.random.default_rng(2).lognormal(0, 1, 120)
    for quantile in (0.2, 0.5, 0.9, 0.95):
        found = gated_quantile(values, quantile)
        by_scipy = stats.quantile_test(values, q=1.0, p=quantile).confidence_interval(0.95)
        assert (found.low, found.high) == (by_scipy.low, by_scipy.high)
        assert found.low <= found.estimate <= found.high
        assert found.estimate == np.quantile(values, quantile, method="inverted_cdf")


def test_unfinished_runs_count_as_the_longest_and_are_never_dropped():
    waits_s = [1.0] * 84 + [math.inf] * 6
    found = gated_quantile(waits_s, 0.95)
    assert (found.estimate, found.low, found.high) == (math.inf, 1.0, math.inf)
    assert gated_quantile(waits_s, 0.5).text() == "1.00 [1.00, 1.00]"
    with pytest.raises(ConfigurationError, match="NaN"):
        gated_quantile([1.0] * 84 + [math.nan] * 6, 0.95)


# ---- corrections


def test_holm_steps_down_and_never_up():
    # Worked by hand: 0.01 × 4, 0.02 × 3 → 0.06, 0.03 × 2 → 0.06, 0.5.
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


def test_what_is_no_p_value_is_refused():
    for wrong in ([], [1.5], [math.nan]):
        with pytest.raises(ConfigurationError, match="p_values"):
            holm(wrong)


def test_tests_that_cannot_reject_need_no_correction_for_them():
    """Tarone: of four tests one has no discordant pair, and the others are corrected for three."""
    found = tarone([0.004, 0.5, 0.03, 1.0], [0.001, 0.002, 0.002, 1.0], 0.025)
    assert list(found) == pytest.approx([0.012, 1.0, 0.09, 1.0])


def test_where_no_test_can_reject_none_does():
    assert list(tarone([0.1, 0.06], [0.06, 0.06], 0.025)) == [1.0, 1.0]
