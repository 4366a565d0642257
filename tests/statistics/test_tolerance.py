"""Limits of several kinds together: how many calls they take, what they give up, units, and calls that were cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, AnswerTimes
from docmind_lab.statistics.completion_curves import aalen_johansen
from docmind_lab.statistics.tolerance import ToleranceSample, calls_needed, most_given_up


def sample(values: Any, unit: Any = None, is_whole: Any = None) -> ToleranceSample:
    table = np.asarray(values, dtype="float64").reshape(len(values), -1)
    units = np.arange(len(table)) if unit is None else np.asarray(unit)
    return ToleranceSample.of(table, np.ones(len(table), bool) if is_whole is None else is_whole, units)


@pytest.mark.parametrize(("kinds", "needed"), [(1, 500), (2, 700), (3, 900)])
def test_each_further_kind_of_limit_costs_one_more_call_given_up(kinds: int, needed: int) -> None:
    assert calls_needed(kinds, 0.01) == needed
    assert most_given_up(needed, 0.01) >= kinds > most_given_up(needed - 1, 0.01)


def test_with_one_call_fewer_than_needed_nothing_is_known() -> None:
    # Of independent calls, but for the correction of Korn and Graubard, which is a few calls here.
    durations = np.random.default_rng(1).permutation(1000)[:, None] + 1.0
    assert sample(durations[:499]).limits(0.01)[0] is None
    assert sample(durations[:510]).limits(0.01)[0] is not None


def test_limits_give_up_calls_in_turn_and_the_second_the_longest_of_the_others() -> None:
    """With calls enough for two limits, the longest sets the first; it is out of the way of the second."""
    values = np.column_stack([np.arange(1.0, 721), np.arange(1.0, 721)])
    limits, _ = sample(values).limits(0.01)
    assert limits is not None
    assert limits.tolist() == [720.0, 719.0]


def test_the_same_calls_again_in_the_same_units_say_no_more() -> None:
    """Alternatives are compared on the same draws: seven times the calls, and no further draw."""
    rng = np.random.default_rng(2)
    once, unit = np.exp(rng.normal(size=(800, 2))), np.repeat(np.arange(400), 2)
    limits, enough = sample(once, unit).limits(0.02)
    again, enough_again = sample(np.repeat(once, 7, axis=0), np.repeat(unit, 7)).limits(0.02)
    assert enough_again == pytest.approx(enough, rel=0.15)
    assert again is not None
    assert limits is not None
    assert (sample(once).share((once > again).any(axis=1)).estimate) <= 0.02
    assert sample(np.repeat(once, 7, axis=0)).limits(0.02)[1] > 6 * enough


def test_calls_of_a_unit_that_are_nearly_alike_allow_no_tighter_limits_than_one_of_each() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        one = np.exp(rng.normal(size=900))
        alike = np.repeat(one, 5) * (1 + 1e-6 * rng.random(4500))
        (limit,), (limit_of_alike,) = (
            sample(one).limits(0.02)[0],
            sample(alike, np.repeat(range(900), 5)).limits(0.02)[0],
        )
        assert limit_of_alike >= limit
    # Six hundred are fewer than three limits take, also where one unit would set all three.
    six_hundred = np.repeat(np.exp(rng.normal(size=600)), 5) * (1 + 1e-6 * rng.random(3000))
    of_three_kinds = np.column_stack([six_hundred] * 3)
    assert sample(of_three_kinds, np.repeat(range(600), 5)).limits(0.01)[0] is None


def test_large_units_of_independent_calls_are_not_taken_for_dependent_ones() -> None:
    drawn = np.random.default_rng(3).exponential(size=8000)
    assert sample(drawn, np.repeat(np.arange(40), 200)).limits(0.05)[1] > 0.5 * 8000
    of_one_unit = sample(drawn, np.zeros(8000, dtype="int64"))
    assert of_one_unit.limits(0.05) == (None, 0.0)


@pytest.mark.parametrize("at_s", [0.5, 1.0, 2.0])
def test_the_share_beyond_a_limit_is_that_of_kaplan_and_meier(at_s: float) -> None:
    rng = np.random.default_rng(4)
    lasts, cut = rng.exponential(size=600).round(2), rng.exponential(2.0, size=600).round(2)
    is_whole, seen = lasts <= cut, np.minimum(lasts, cut)
    part = sample(seen, is_whole=is_whole)
    curve = aalen_johansen(AnswerTimes(seen, np.where(is_whole, ANSWERED, CENSORED)))
    expected = 1 - curve.share[np.searchsorted(curve.at_s, at_s, side="right") - 1]
    share = part.share(part.values[:, 0] > at_s)
    assert share.estimate == pytest.approx(expected)
    # Fewer calls were watched to their end, so the interval is wider than without cuts.
    whole = sample(lasts).share(lasts > at_s)
    assert share.high - share.low > whole.high - whole.low


def test_what_was_cut_after_the_longest_call_is_beyond_every_limit() -> None:
    seen = np.append(np.linspace(1, 2, 990), np.full(10, 60.0))
    is_whole = np.arange(1000) < 990
    assert sample(seen, is_whole=is_whole).share(np.zeros(990, dtype=bool)).estimate == pytest.approx(0.01)
    assert sample(seen, is_whole=is_whole).limits(0.01)[0] is None
    assert sample(seen, is_whole=is_whole).limits(0.05)[0] is not None
