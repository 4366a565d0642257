"""Truth that is known because it was drawn: how often 95 % intervals hold it, and how often tests cry wolf."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from intervals import holds
from often import often
from scipy import stats

from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, COMPETING, AnswerTimes
from docmind_lab.statistics.completion_curves import completion_curve
from docmind_lab.statistics.differences import mean_p_value
from docmind_lab.statistics.means import studentised_interval
from docmind_lab.statistics.shares import paired_share_difference, share_interval

REPEATS = 500
# As many runs as a recommendation at 0.95 asks for at least. With 20 runs and skewed differences no interval that was
# tried (normal, Student's, BCa, studentised bootstrap) holds the truth more often than about 92 % of the time.
RUNS = 73
DEADLINE_S = 20.0
LOW, HIGH = 0.93, 0.97


def million_draws(draw):
    """The true mean of what a function draws, to a thousandth of its spread: 4 million at once, once for all tests."""
    return functools.cache(lambda: float(draw(np.random.default_rng(9), 4_000_000).mean()))


# ---- shares


def wilson(share):
    return lambda rng, _: holds(share_interval(int(rng.binomial(RUNS, share)), RUNS), share)


def paired_shares(rng, _):
    common = rng.random(RUNS)
    second = np.where(rng.random(RUNS) < 0.5, common, rng.random(RUNS)) < 0.6
    return holds(paired_share_difference(common < 0.9, second).interval, 0.3)


# ---- differences of independent arms


def late_work(rng, size):
    """Work that goes on after the deadline, for the one run in four that is late."""
    late = rng.lognormal(np.log(12), 0.8, size) > DEADLINE_S
    return np.where(late, rng.exponential(4.0, size), 0.0)


def overruns(rng, size):
    return np.maximum(rng.lognormal(np.log(12), 0.8, size) - 14.0, 0.0)


def recall_in_quarters(rng, size):
    return rng.binomial(4, 0.6, size) / 4


def times_to_answer(rng, size):
    return np.minimum(rng.lognormal(np.log(12), 0.8, size), DEADLINE_S)


def two_arms(draw):
    """Arms that are the same, of which one has half as many runs again."""
    return lambda rng, n: holds(studentised_interval(draw(rng, RUNS), draw(rng, 110), 0.95, n, 999), 0.0)


# ---- completion curves


def drawn_times(rng, cut_at_s, size=RUNS):
    """Answers at lognormal instants, failures at exponential ones, and the instant at which a run is cut."""
    answer_s, failure_s = rng.lognormal(np.log(12), 0.8, size), rng.exponential(60.0, size)
    ended_s = np.minimum(answer_s, failure_s)
    what = np.where(cut_at_s <= ended_s, CENSORED, np.where(answer_s < failure_s, ANSWERED, COMPETING))
    return AnswerTimes(np.minimum(ended_s, cut_at_s), what)


def at_random(rng):
    return rng.uniform(8.0, 60.0, RUNS)


def answered_by_18_s(rng, size):
    times = drawn_times(rng, np.inf, size)
    return (times.what == ANSWERED) & (times.at_s <= 18.0)


SHARE = million_draws(answered_by_18_s)


def band(rng, _):
    curve = completion_curve(drawn_times(rng, at_random(rng)), 100.0)
    then = curve[curve["at_s"] <= 18.0].iloc[-1]
    return bool(then["low"] <= SHARE() <= then["high"])


# Of each a function of a generator and the number of the repeat: whether the interval of one study holds the truth.
KINDS = {
    "shares": {
        **{f"Wilson at {share}": wilson(share) for share in (0.5, 0.8, 0.9, 0.95)},
        "paired": paired_shares,
    },
    "independent arms": {draw.__name__: two_arms(draw) for draw in (recall_in_quarters, times_to_answer)},
    "completion curves": {"band at an instant": band},
}
ALL = [(kind, name) for kind, cases in KINDS.items() for name in cases]


def times_held(case, repeats):
    rng = np.random.default_rng(1)
    return sum(case(rng, repeat) for repeat in range(repeats))


@pytest.mark.parametrize("kind", often(["shares", "independent arms"], "shares"))
def test_95_percent_intervals_hold_the_truth_93_to_97_percent_of_the_time(kind):
    """Each case is drawn 500 times, and all cases of a kind together are held to 93–97 %.

    A share of 500 is within two percentage points of the truth in 19 of 20 cases only. So one case alone fails where
    its count would come up less than once in 1000 if it were held 93 %, or 97 %, of the time; the test below is sharp.
    """
    counts = {name: times_held(case, REPEATS) for name, case in KINDS[kind].items()}
    assert LOW <= sum(counts.values()) / (REPEATS * len(counts)) <= HIGH
    least, most = stats.binom.ppf(0.001, REPEATS, LOW), stats.binom.isf(0.001, REPEATS, HIGH)
    assert {name: count for name, count in counts.items() if not least <= count <= most} == {}


@pytest.mark.full
@pytest.mark.parametrize(("kind", "name"), ALL)
def test_each_interval_holds_the_truth_93_to_97_percent_of_1500_times(kind, name):
    """With 1500 repeats the standard error is half a percentage point, and the band is that of the truth."""
    assert LOW <= times_held(KINDS[kind][name], 1500) / 1500 <= HIGH


@pytest.mark.parametrize("draw", [late_work, overruns])
def test_of_skewed_values_an_interval_of_independent_arms_holds_the_truth_in_nine_of_ten_studies(draw):
    """91 to 92 % of 2,000; pairs have an interval that allows for skewness."""
    assert times_held(two_arms(draw), REPEATS) >= stats.binom.ppf(0.001, REPEATS, 0.91)


def test_arms_that_differ_are_flagged_nearly_always():
    """An A/A control could pass because nothing is ever flagged: half of the latency is."""
    rng = np.random.default_rng(1)
    first = drawn_times(rng, DEADLINE_S)
    second = AnswerTimes(drawn_times(rng, 2 * DEADLINE_S).at_s / 2, np.full(RUNS, ANSWERED))
    times_s = (np.where(arm.what == ANSWERED, np.minimum(arm.at_s, DEADLINE_S), DEADLINE_S) for arm in (first, second))
    assert mean_p_value(*times_s, paired=False, resamples=999)[0] <= 0.002
