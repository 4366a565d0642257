"""Quality against time: the share of runs with a good result by each timeout; what is not known is not nothing."""

from __future__ import annotations

import numpy as np
import pytest

from docmind_lab.findings.what_if.shares import good_shares
from docmind_lab.tables.traces.model import Span, TracedRun, Traces

NAN = float("nan")


def run(number: int, ended_at_s: float, succeeded: float, **others: float | str) -> TracedRun:
    values = {"outcome": "answered", "observed_until_s": ended_at_s, **others}
    return TracedRun(str(number), str(number), "test", ended_at_s, succeeded=succeeded, **values)  # type: ignore[arg-type]


def steps(runs: list[TracedRun]) -> list[Span]:
    return [Span(each.trace_id, "s", "", "agent", "step", 0.0, each.observed_until_s) for each in runs]


def traces_of(runs: list[TracedRun]) -> Traces:
    return Traces.of(runs, steps(runs))


TEN = [run(number, 10.0 * (number + 1), float(number % 2)) for number in range(10)]


def shares(runs: list[TracedRun], *timeouts_s: float) -> list[float]:
    return list(good_shares(traces_of(runs), np.array(timeouts_s), 0.95)["good_share"])


def test_a_run_is_good_from_its_end_if_it_succeeded() -> None:
    assert shares(TEN, 10, 20, 59, 60, 100) == pytest.approx([0, 0.1, 0.2, 0.3, 0.5])


def test_a_run_that_says_when_its_result_was_good_counts_from_then() -> None:
    assert shares([*TEN[:9], run(9, 100.0, 1.0, good_from_s=15.0)], 14, 15, 20) == pytest.approx([0, 0.1, 0.2])


def test_runs_that_do_not_say_whether_they_succeeded_are_left_out() -> None:
    more = [run(number, 5.0, NAN) for number in range(20, 40)]
    frame = good_shares(traces_of([*TEN, *more]), np.array([100.0]), 0.95)
    assert (frame["judged_runs"].iloc[0], frame["good_share"].iloc[0]) == (10, pytest.approx(0.5))
    assert good_shares(traces_of(more), np.array([100.0]), 0.95)["good_share"].isna().all()


def test_a_run_that_was_cut_is_estimated_and_not_counted_as_bad() -> None:
    cut = run(30, NAN, 0.0, outcome="cut", observed_until_s=35.0)
    # Three of the ten had ended by then with one good result; the rest stands for what was cut as well.
    assert shares([*TEN, cut], 20, 100) == pytest.approx([1 / 11, 1 / 11 + (8 / 11) * 4 / 7])


def test_the_bounds_of_the_quality_hold_the_share_and_are_those_of_sessions() -> None:
    frame = good_shares(traces_of(TEN), np.array([60.0]), 0.95).iloc[0]
    assert frame["good_low"] < 0.3 < frame["good_high"]
