"""Second budgets in the other workloads: they end a run that enforces them, and only such a one."""

from __future__ import annotations

import pytest

import docmind_lab as dl
from docmind_lab.experiments.nouns import system_of_kind


@pytest.mark.parametrize("workload", ["research", "staged"])
def test_a_budget_of_calls_ends_a_run_under_a_and_none_under_b(workload: str) -> None:
    # One call is too few for either; 4 s are too few for research without an end, and enough to see more calls.
    study = dl.compare(system_of_kind(workload, budget=dl.Budget(calls=1)), 4.0, alternatives="A,B", runs=2)
    under = dict(iter(study.runs.groupby("alternative", observed=True)))
    assert set(under["cooperative"]["calls_spent"]) == {1}
    assert set(under["cooperative"]["stop_reason"]) == {"call_budget"}
    assert (under["hard_timeout"]["calls_spent"] > 1).all()
    assert "call_budget" not in set(under["hard_timeout"]["stop_reason"])
