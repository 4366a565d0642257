"""What misbehaving peers change: what is wasted, and nothing of what is decided."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks.peer_chaos import CASES, chaos_table

STEPS = 3
DECIDED = ["completed", "timed_out", "send_failed", "retriggers"]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return chaos_table(STEPS)


def test_every_step_goes_on_exactly_once_whatever_peers_do(table: pd.DataFrame) -> None:
    assert list(table.index) == list(CASES)
    assert (table["retriggers"] == STEPS).all()
    assert (table["calls"] == 4 * STEPS).all()
    assert (table[["completed", "timed_out", "send_failed"]].sum(axis=1) == table["calls"]).all()


@pytest.mark.parametrize("case", ["cancel lost", "cancel ignored", "answers twice", "clocks skewed"])
def test_what_is_decided_does_not_depend_on_cancels_duplicates_or_clocks(case: str, table: pd.DataFrame) -> None:
    assert table.loc[case, DECIDED].tolist() == table.loc["well-behaved", DECIDED].tolist()
    assert table.loc["well-behaved", "timed_out"] > 0


def test_a_cancel_that_is_lost_or_ignored_costs_the_peers_time_and_late_answers(table: pd.DataFrame) -> None:
    obedient = table.loc["well-behaved"]
    for case in ("cancel lost", "cancel ignored"):
        assert table.loc[case, "peer_wasted_s"] > obedient["peer_wasted_s"]
        assert table.loc[case, "late_responses"] > 0
        assert table.loc[case, "cancels_failed"] == table.loc[case, "cancels"] > 0
        assert table.loc[case, "cancel_latency_s"] == pytest.approx(0.25)
    assert obedient["late_responses"] == obedient["cancels_failed"] == 0


def test_duplicates_are_ignored_one_for_each_answer(table: pd.DataFrame) -> None:
    assert table.loc["answers twice", "duplicate_responses"] == table.loc["answers twice", "completed"]


def test_a_clock_that_is_an_hour_off_changes_not_one_number(table: pd.DataFrame) -> None:
    pd.testing.assert_series_equal(table.loc["clocks skewed"], table.loc["well-behaved"], check_names=False)


def test_late_peers_time_out_more_often(table: pd.DataFrame) -> None:
    assert table.loc["half are late", "timed_out"] > table.loc["well-behaved", "timed_out"]
