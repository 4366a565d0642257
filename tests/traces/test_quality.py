"""Quality against time: the share of runs with a good result by each timeout; what is not known is not nothing."""

from __future__ import annotations

import numpy as np
import pytest

from docmind_lab.analysis.plots.what_ifs import what_if_frontier
from docmind_lab.analysis.traces.model import Span, TracedRun, Traces
from docmind_lab.analysis.traces.shares import good_shares
from docmind_lab.analysis.traces.what_if import what_if

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


def test_a_what_if_says_in_table_sentence_and_figure_when_results_were_good() -> None:
    result = what_if(traces_of([*TEN, run(11, 500.0, 0.0)]), [50, 100, 500], "A,B")
    assert list(result.table()["good"]) == ["18.2%", "45.5%", "45.5%"]
    said = " ".join(result.sentences())
    assert "45.5% of 11 runs had a good result by 500 s" in said
    assert "and 45.5% by 100 s already" in said
    upper, _ = what_if_frontier(result)
    assert list(upper.lines[1].get_ydata()) == pytest.approx([2 / 11, 5 / 11, 5 / 11])


def test_traces_without_success_have_no_column_of_quality() -> None:
    result = what_if(traces_of([run(number, 10.0, NAN) for number in range(5)]), [50], "A,B")
    assert "good" not in result.table()
    assert "good result" not in " ".join(result.sentences())


def test_what_is_left_behind_is_not_known_where_no_call_was_recorded() -> None:
    result = what_if(traces_of(TEN), [50, 100], "unguarded,A,B")
    assert result.frame["busy_after_s"].isna().all()
    assert "seconds" not in result.table(50)
    assert "what an alternative would leave behind is not known" in " ".join(result.sentences())
    _, lower = what_if_frontier(result)
    assert lower.texts[0].get_text() == "not known: no call was recorded with its start"


def test_runs_cut_before_a_timeout_are_not_said_to_have_failed_calls() -> None:
    runs = [*TEN, *(run(number, NAN, NAN, outcome="cut", observed_until_s=5.0) for number in range(20, 23))]
    calls = [Span(each.trace_id, "c", "", "w", "llm", 0.0, each.observed_until_s) for each in runs]
    result = what_if(Traces.of(runs, calls), [50.0], "unguarded,A,B")
    said = " ".join(result.sentences())
    assert "3 of 13 runs were cut, or watched no longer, before their end" in said
    assert "retried" not in said
    assert list(result.frame["known_runs"]) == [10, 10, 10]
    assert list(result.frame["overran"]) == [5, 0, 0]
