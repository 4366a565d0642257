"""Findings over runs of the real stack in virtual time: what a study of every alternative and a fake must say."""

from __future__ import annotations

import pandas as pd
import pytest
from flat_compare import compare_by
from sample_runs import concatenated

from docmind_lab.alternatives.controls import FakeTimeout
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.findings import recommend
from docmind_lab.tables.conditions import with_arms

EVERY = ("unguarded", "A", "B", "C", "D", "E", "F", "B:naive", FakeTimeout())
BUDGET_S = 10.0
NOT_ENFORCING = {"fake timeout", "B  hard timeout (naive)"}


def measured(seed: int, runs: int, alternatives=EVERY, **changes) -> pd.DataFrame:
    options = {"decision_timeout_s": BUDGET_S, "documents": "handbook"} | changes
    return compare_by(**options, runs=runs, seed=seed, alternatives=list(alternatives)).runs


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    # Few enough at a time to be computed in this process, which has imported everything already.
    return with_arms(concatenated("runs", [measured(seed, 2) for seed in (7, 12)]))


def test_those_who_enforce_nothing_are_caught_by_what_was_measured_and_nobody_else_is_accused(runs) -> None:
    """The fake says that it stopped; its callers were late in the runs in which those of the control were."""
    overrun_s = runs["caller_overrun_s"].fillna(runs["horizon_s"] - BUDGET_S).groupby(runs["arm"].astype("str")).mean()
    control_s = overrun_s.pop("control  unguarded")
    assert (overrun_s[list(NOT_ENFORCING)] - control_s).abs().max() < HELD_WITHIN_S
    assert HELD_WITHIN_S < overrun_s["D  stop flag"] < control_s - HELD_WITHIN_S
    assert (overrun_s.drop(["D  stop flag", *NOT_ENFORCING]) < HELD_WITHIN_S).all()


def test_a_budget_that_answered_nothing_in_time_is_said_to_be_too_short(runs: pd.DataFrame) -> None:
    found = recommend(runs, target=0.9)
    assert set(found.frame["verdict"]) == {"below"}
    assert "fake timeout" not in set(found.frame["arm"].astype(str))
