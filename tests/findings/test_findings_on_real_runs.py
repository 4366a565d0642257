"""Findings over runs of the real stack in virtual time: what a study of every alternative and a fake must say."""

from __future__ import annotations

import pandas as pd
import pytest
from flat_compare import compare_by
from sample_runs import concatenated

from docmind_lab.alternatives.controls import FakeTimeout
from docmind_lab.findings import enforcement, recommend, scorecard

EVERY = ("unguarded", "A", "B", "C", "D", "E", "F", "B:naive", FakeTimeout())
BUDGET_S = 10.0
NOT_ENFORCING = {"fake timeout", "B  hard timeout (naive)"}


def measured(seed: int, runs: int, alternatives=EVERY, **changes) -> pd.DataFrame:
    options = {"decision_timeout_s": BUDGET_S, "documents": "handbook"} | changes
    return compare_by(**options, runs=runs, seed=seed, alternatives=list(alternatives)).runs


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    # Few enough at a time to be computed in this process, which has imported everything already.
    return concatenated("runs", [measured(seed, 2) for seed in (7, 12)])


def test_those_who_enforce_nothing_are_caught_and_nobody_else_is_accused(runs: pd.DataFrame) -> None:
    found = enforcement(runs).set_index("arm")
    assert set(found.index[found["verdict"] == "does not enforce"]) == NOT_ENFORCING
    assert found.loc["D  stop flag", "verdict"] == "late"
    assert (found.drop([*NOT_ENFORCING, "D  stop flag"])["verdict"] == "enforces").all()


def test_no_single_question_acquits_a_fake_or_accuses_an_enforcer(runs: pd.DataFrame) -> None:
    caught = 0
    for _, of_seed in runs.groupby("seed"):
        found = enforcement(of_seed).set_index("arm")["verdict"]
        assert not {"does not enforce", "not tested"} & set(found.drop(list(NOT_ENFORCING)))
        # "undecided" where the deadline fell in the last step, in which an enforcer between steps would look the same.
        assert {found[arm] for arm in NOT_ENFORCING} <= {"does not enforce", "undecided"}
        caught += found["fake timeout"] == "does not enforce"
    assert caught >= 2


@pytest.mark.full
@pytest.mark.parametrize("budget_s", [8.0, 15.0, 25.0])
@pytest.mark.parametrize("seed", [7, 1007, 2007])
def test_a_fake_is_caught_every_time_that_a_run_had_a_step_to_go_at_its_deadline(seed: int, budget_s: float) -> None:
    runs = measured(seed, 12, decision_timeout_s=budget_s)
    found = enforcement(runs).set_index("arm")["verdict"]
    control = runs[runs["alternative"].astype(str) == "unguarded"]
    late = control["returned_at_s"].fillna(control["horizon_s"]) > budget_s + 0.15
    if not late.any():
        # All of these questions were answered sooner than that: then nobody is accused, and nobody acquitted.
        assert set(found) == {"not tested"}
        return
    assert (late & (control["calls_after_deadline"] > 0)).any(), "a deadline in the last step decides nothing"
    assert set(found.index[found == "does not enforce"]) == NOT_ENFORCING


@pytest.mark.full
@pytest.mark.parametrize("fault", ["hang", "trickle", "rate_limit=30"])
def test_under_a_fault_no_enforcer_is_accused_and_no_fake_is_acquitted(fault: str) -> None:
    found = enforcement(measured(7, 8, faults=fault)).set_index("arm")["verdict"]
    assert "does not enforce" not in set(found.drop(list(NOT_ENFORCING)))
    assert {found[arm] for arm in NOT_ENFORCING} <= {"does not enforce", "undecided"}


def test_a_scorecard_of_real_runs_puts_those_that_keep_the_deadline_ahead(runs: pd.DataFrame) -> None:
    card = scorecard(runs, resamples=200)
    perf = card.totals.set_index("option")["perf_measured"]
    assert perf["A  cooperative"] == perf["C  async cancellation"] == 10.0
    assert perf["fake timeout"] <= perf["B  hard timeout"] < perf["D  stop flag"] < perf["A  cooperative"]
    assert card.decision["measured"] == "A  cooperative"
    # At 10 s the control had no answer in time, so that nobody can be held to one.
    assert "Not measured here, its weight left to the others: answered." in card.sentences


def test_a_budget_that_answered_nothing_in_time_is_said_to_be_too_short(runs: pd.DataFrame) -> None:
    found = recommend(runs, target=0.9)
    assert set(found.frame["verdict"]) == {"below"}
    assert "fake timeout" not in set(found.frame["arm"].astype(str))
