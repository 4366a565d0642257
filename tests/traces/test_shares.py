"""Shares of recorded runs in time: intervals and predictions hold by session, also where sessions share their luck."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.analysis.traces.model import TracedRun, Traces
from docmind_lab.analysis.traces.shares import in_time_shares, predicted_shares
from docmind_lab.core.errors import ConfigurationError


def runs_of(durations: list[tuple[str, float]], cut_at_s: float = np.inf, outcome: str = "answered") -> Traces:
    runs = []
    for number, (session, seconds) in enumerate(durations):
        is_cut = seconds > cut_at_s
        runs.append(
            TracedRun(
                trace_id=str(number),
                session=session,
                source="test",
                ended_at_s=float("nan") if is_cut else seconds,
                observed_until_s=min(seconds, cut_at_s),
                outcome="cut" if is_cut else outcome,
            )
        )
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


def test_runs_of_one_session_are_not_independent() -> None:
    durations = slow_and_fast_sessions(np.random.default_rng(3), 100)
    alone = [(str(number), seconds) for number, (_, seconds) in enumerate(durations)]
    by_session, independent = (in_time_shares(runs_of(each), TIMEOUTS, 0.95) for each in (durations, alone))
    assert ((by_session["high"] - by_session["low"]) > 1.5 * (independent["high"] - independent["low"])).all()


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


def test_runs_that_were_cut_vary_by_session_as_their_estimate_does() -> None:
    durations = [(f"s{number // 4}", 0.1 + 0.02 * number) for number in range(60)]
    traces = runs_of(durations, cut_at_s=0.7)
    row = in_time_shares(traces, np.array([0.9]), 0.95).iloc[0]
    was_cut = np.array([seconds > 0.7 for _, seconds in durations])
    values = np.where(was_cut, row["share"], 1.0)
    session = np.array([name for name, _ in durations])
    names = list(dict.fromkeys(session))
    left_out = np.array([values[session != name].mean() for name in names])
    mean, n = values.mean(), len(values)
    effect = max(1.0, 14 / 15 * ((left_out - mean) ** 2).sum() / (mean * (1 - mean) / n))
    expected = wilson(row["share"], (~was_cut).sum() / effect, 14)
    assert (row["low"], row["high"]) == pytest.approx(expected)


def wilson(share: float, n: float, freedom: int) -> tuple[float, float]:
    z = stats.t.ppf(0.975, freedom)
    roots = np.roots([n + z * z, -(2 * n * share + z * z), n * share**2])
    return min(roots), max(roots)


def test_a_run_cut_before_a_timeout_is_estimated_and_not_counted_as_done() -> None:
    durations = [(str(number), float(number)) for number in range(1, 11)]
    cut = [*durations, *((f"c{number}", 100.0) for number in range(10))]
    row = in_time_shares(runs_of(cut, cut_at_s=8.5), np.array([5.0, 20.0]), 0.95)
    assert list(row["share"]) == pytest.approx([5 / 20, 8 / 20])
    assert list(row["observed_share"]) == pytest.approx([1.0, 8 / 20])
    # All that is known of the twelve that were cut is that they went on.
    assert row["high"].iloc[1] - row["low"].iloc[1] > row["high"].iloc[0] - row["low"].iloc[0]


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
