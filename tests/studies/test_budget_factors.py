"""Budgets of tokens and calls as factors of a study: levels, and conditions of their own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from small_studies import DESIGN

from docmind_lab.core.budgets import Budget
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep


def design(**factors: Any) -> StudyDesign:
    return StudyDesign.of({"documents": "handbook", "repeats": 1, "factors": {"alternative": "A"} | factors})


def budgets_of(made: StudyDesign) -> list[Budget]:
    return [
        order.facts.budget for bench in benches_of(made, Settings()) for cell in bench.cells for order in cell.orders
    ]


def test_every_combination_of_limits_is_a_run_of_its_own() -> None:
    made = design(budget_tokens=[6000, "none"], budget_calls=[6, 12])
    expected = [Budget(None, tokens, calls) for tokens in (6000, None) for calls in (6, 12)]
    assert sorted(budgets_of(made), key=repr) == sorted(expected, key=repr)


def test_a_study_without_second_budgets_is_the_one_that_it_was_before_there_were_any() -> None:
    plain = StudyDesign.of(DESIGN)
    assert not [name for name in plain.to_dict()["factors"] if name.startswith("budget")]
    none = StudyDesign.of({**DESIGN, "factors": {**DESIGN["factors"], "budget_calls": "none"}})
    assert none.to_dict() == plain.to_dict()
    assert design(budget_calls=[6]).study_id != design().study_id


@pytest.mark.parametrize(
    ("factors", "said"),
    [
        ({"budget_calls": 0}, "factors.budget_calls must be a whole number from 1 up, not 0; try 12"),
        ({"budget_calls": "few"}, "factors.budget_calls: "),
        ({"budget_calls": True}, "factors.budget_calls: a truth value is no number"),
        ({"budget_tokens": 1.5}, "factors.budget_tokens: "),
    ],
)
def test_a_limit_that_cannot_be_used_is_named_with_what_can(factors: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        design(**factors)


def test_the_design_says_its_limits() -> None:
    assert "budget_calls: 6, none" in repr(design(budget_calls=[6, "none"]))


def test_a_sweep_holds_each_run_to_the_limits_of_its_condition_and_its_manifest_has_them() -> None:
    made = design(alternative="unguarded,A", decision_timeout_s=60, budget_calls=[3, "none"])
    study = sweep(made, executor=InThisProcess())
    runs = study.runs.astype({"second_budgets": "str", "alternative": "str"}).set_index(
        ["second_budgets", "alternative"]
    )
    assert set(runs.index) == {(level, name) for level in ("3 calls", "none") for name in ("unguarded", "cooperative")}
    assert runs.loc[("3 calls", "cooperative"), ["stop_reason", "calls_spent"]].tolist() == ["call_budget", 3]
    assert runs.loc[("3 calls", "unguarded"), "calls_overspent"] > 0
    assert runs.loc[("none", "cooperative"), "calls_spent"] == runs.loc[("none", "unguarded"), "calls_spent"] > 3
    written = study.manifest["design"]
    assert written["factors"]["budget_calls"] == [3, "none"]
    assert "budget_tokens" not in written["factors"]
