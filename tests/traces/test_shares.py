"""Shares of recorded runs in time: intervals and predictions hold by session, also where sessions share their luck."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from timed_runs import timed_run

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.what_if.shares_in_time import in_time_shares, predicted_shares
from docmind_lab.statistics.answer_times import AnswerTimes
from docmind_lab.statistics.completion_curves import aalen_johansen
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.traces.trace_tables import Traces


def runs_of(durations: list[tuple[str, float]], cut_at_s: float = np.inf, outcome: str = "answered") -> Traces:
    return cut_early(durations, [cut_at_s] * len(durations), outcome)


def cut_early(durations: list[tuple[str, float]], limits_s: Sequence[float], outcome: str = "answered") -> Traces:
    """Runs that were watched no longer than their limits, each with its own."""
    runs = [
        timed_run(number, seconds, watched_s=limit_s, session=session, outcome=outcome)
        for number, ((session, seconds), limit_s) in enumerate(zip(durations, limits_s, strict=True))
    ]
    return Traces.of(runs, [])


def slow_and_fast_sessions(generator: np.random.Generator, sessions: int) -> list[tuple[str, float]]:
    """Runs whose slowness is half their session's; a few sessions have very many."""
    durations = []
    for session in range(sessions):
        level = generator.normal()
        for _ in range(1 + generator.geometric(0.2) + (40 if session % 25 == 0 else 0)):
            durations.append((f"s{session}", float(np.exp(0.7 * level + 0.7 * generator.normal()))))
    return durations


TIMEOUTS = np.array([0.5, 1.0, 2.0, 4.0])


def test_independent_runs_have_the_interval_of_wilson() -> None:
    traces = runs_of([(str(number), float(number)) for number in range(1, 2001)])
    row = in_time_shares(traces, np.array([1500.0]), 0.95).iloc[0]
    expected = share_interval(1500, 2000)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), abs=2e-4)


def test_the_variance_of_a_share_is_the_jackknifes_over_sessions() -> None:
    durations = slow_and_fast_sessions(np.random.default_rng(4), 12)
    answered = pd.Series([float(seconds <= 1.0) for _, seconds in durations])
    session = pd.Series([name for name, _ in durations])
    left_out = np.array([answered[session != name].mean() for name in session.unique()])
    variance = 11 / 12 * ((left_out - answered.mean()) ** 2).sum()
    share = answered.mean()
    expected = wilson(share, share * (1 - share) / variance, 11)
    row = in_time_shares(runs_of(durations), np.array([1.0]), 0.95).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(expected)


def shares_without(names: list[str], durations: list[tuple[str, float]], limits_s: list[float]) -> np.ndarray:
    """The share answered by 1.5 s without each of these sessions."""
    session = np.array([name for name, _ in durations])
    seconds, limits = np.array([each for _, each in durations]), np.array(limits_s)
    at_s, what = np.minimum(seconds, limits), (seconds <= limits).astype("int64")
    return np.array([share_at(AnswerTimes(at_s[session != name], what[session != name]), 1.5) for name in names])


def test_runs_that_were_cut_vary_by_session_as_their_estimate_does() -> None:
    """Leaving out one session after the other, which is nearly the derivative by its weight."""
    durations = slow_and_fast_sessions(np.random.default_rng(14), 30)
    limits = [0.8 if place % 3 else 9.0 for place in range(len(durations))]
    names = list(dict.fromkeys(session for session, _ in durations))
    left_out = shares_without(names, durations, limits)
    alone = [(str(place), seconds) for place, (_, seconds) in enumerate(durations)]
    rows = [in_time_shares(cut_early(each, limits), np.array([1.5]), 0.95).iloc[0] for each in (durations, alone)]
    by_session, independent = ((row["high"] - row["low"]) for row in rows)
    singles = shares_without([name for name, _ in alone], alone, limits)
    sessions, runs = len(left_out), len(singles)
    ratio = math.sqrt(
        ((sessions - 1) / sessions * ((left_out - rows[0]["share"]) ** 2).sum())
        / ((runs - 1) / runs * ((singles - rows[0]["share"]) ** 2).sum())
    )
    assert by_session / independent == pytest.approx(ratio, rel=0.1)


@pytest.mark.parametrize("at_s", [0.5, 1.0, 3.0])
def test_the_influence_of_a_run_is_the_derivative_of_the_share_by_its_weight(at_s: float) -> None:
    rng = np.random.default_rng(15)
    times = AnswerTimes(np.round(rng.exponential(1.0, 40), 1) + 0.1, rng.integers(0, 3, 40))
    twice = 500  # a weight of 501 in place of 500, for a difference that is nearly a derivative
    many = AnswerTimes(np.repeat(times.at_s, twice), np.repeat(times.what, twice))
    shares = []
    for place in range(40):
        more = AnswerTimes(np.append(many.at_s, times.at_s[place]), np.append(many.what, times.what[place]))
        shares.append(share_at(more, at_s) - share_at(many, at_s))
    expected = aalen_johansen(times).influences(times, at_s)
    assert np.array(shares) * twice == pytest.approx(expected, abs=2e-4)
    assert expected.sum() == pytest.approx(0.0, abs=1e-12)


def share_at(times: AnswerTimes, at_s: float) -> float:
    curve = aalen_johansen(times)
    return float(curve.share[np.searchsorted(curve.at_s, at_s, side="right") - 1])


def wilson(share: float, n: float, freedom: int) -> tuple[float, float]:
    z = stats.t.ppf(0.975, freedom)
    roots = np.roots([n + z * z, -(2 * n * share + z * z), n * share**2])
    return min(roots), max(roots)


def test_a_run_cut_before_a_timeout_is_estimated_and_not_counted_as_done() -> None:
    """Ten were cut at 8.5 s; of ten that went on, five were done by 8.5 s and three of the others by 20 s."""
    durations = [(str(number), 1.0 if number % 4 < 2 else 100.0 if number < 8 else 12.0) for number in range(20)]
    traces = cut_early(durations, [8.5 if number % 2 else 200.0 for number in range(20)])
    row = in_time_shares(traces, np.array([5.0, 20.0]), 0.95)
    assert list(row["share"]) == pytest.approx([10 / 20, 10 / 20 + 10 / 20 * 3 / 5])
    assert list(row["observed_share"]) == pytest.approx([1.0, 15 / 20])
    # All that is known of the five that were cut is that they went on: ten runs without a limit say as much.
    low, high = wilson(0.8, 10 * 19 / 20, 19)
    assert (row["low"].iloc[1], row["high"].iloc[1]) == pytest.approx((low, high))


def test_beyond_the_longest_time_watched_a_share_is_not_known() -> None:
    durations = [(str(number), float(number)) for number in range(1, 41)]
    rows = in_time_shares(runs_of(durations, cut_at_s=20.0), np.array([19.0, 20.0, 20.1, 60.0]), 0.95)
    assert list(rows["share"].iloc[:2]) == pytest.approx([19 / 40, 20 / 40])
    assert rows["share"].iloc[2:].isna().all()
    assert set(rows["known_until_s"]) == {20.0}
    assert set(rows["low"].iloc[1:]) == {rows["low"].iloc[1]}
    assert list(rows["high"].iloc[2:]) == [1.0, 1.0]
    predicted = predicted_shares(runs_of(durations, cut_at_s=20.0), np.array([20.0, 60.0]), 40, 0.95)
    assert predicted["share"].isna().tolist() == [False, True]
    assert predicted["high"].iloc[1] == 1.0


def test_a_share_is_not_known_where_fewer_than_five_runs_were_watched_so_long() -> None:
    durations = [(str(number), 1.0 + number / 10) for number in range(100)]
    for longer, is_known in ((4, False), (6, True)):
        limits = [50.0 if 10 <= number < 10 + longer else 0.5 for number in range(100)]
        rows = in_time_shares(cut_early(durations, limits), np.array([0.5, 2.0]), 0.95)
        assert rows["share"].notna().tolist() == [True, is_known]


def test_few_runs_that_nothing_cut_are_known() -> None:
    rows = in_time_shares(runs_of([("a", 1.0), ("b", 2.0), ("c", 3.0)]), np.array([2.0, 90.0]), 0.95)
    assert list(rows["share"]) == pytest.approx([2 / 3, 1.0])
    assert set(rows["known_until_s"]) == {math.inf}


def test_failed_runs_are_never_in_time() -> None:
    assert (in_time_shares(runs_of([("a", 1.0), ("b", 2.0)], outcome="failed"), TIMEOUTS, 0.95)["share"] == 0).all()


def coverage(sessions: int, splits: int, seed: int) -> pd.DataFrame:
    """How often the share of one half of the sessions lies within what the other half predicts."""
    generator = np.random.default_rng(seed)
    hits = []
    for _ in range(splits):
        durations = slow_and_fast_sessions(generator, 2 * sessions)
        names = sorted({session for session, _ in durations})
        generator.shuffle(names)
        learned = set(names[:sessions])
        halves = [[each for each in durations if (each[0] in learned) == first] for first in (True, False)]
        found = predicted_shares(runs_of(halves[0]), TIMEOUTS, sessions, 0.95)
        seen = np.array([[seconds <= timeout for timeout in TIMEOUTS] for _, seconds in halves[1]]).mean(axis=0)
        hits.append((found["low"] <= seen) & (seen <= found["high"]))
    return pd.DataFrame(hits)


@pytest.mark.full
def test_predictions_hold_as_often_as_they_say() -> None:
    """95 % of the intervals hold the share of the other half; 300 splits are ± 1.3 points."""
    hits = coverage(sessions=120, splits=300, seed=812)
    assert 0.93 <= float(hits.to_numpy().mean()) <= 0.97


def test_a_prediction_for_few_sessions_is_wider_than_for_many() -> None:
    traces = runs_of(slow_and_fast_sessions(np.random.default_rng(5), 60))
    few, many = (predicted_shares(traces, TIMEOUTS, sessions, 0.95) for sessions in (5, 500))
    assert ((few["high"] - few["low"]) > (many["high"] - many["low"])).all()
    with pytest.raises(ConfigurationError, match="sessions is 0"):
        predicted_shares(traces, TIMEOUTS, 0, 0.95)
