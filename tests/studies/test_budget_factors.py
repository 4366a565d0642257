"""Budgets of tokens, calls and cost as factors of a study: levels, and conditions of their own."""

from __future__ import annotations

import re
from typing import Any

import pytest
from small_studies import DESIGN

from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep


def design(price: str | None = None, repeats: int = 1, **factors: Any) -> StudyDesign:
    said = {} if price is None else {"price": price}
    return StudyDesign.of(
        {"documents": "handbook", "repeats": repeats, "factors": {"alternative": "A"} | factors} | said
    )


def budgets_of(made: StudyDesign) -> list[Budget]:
    return [
        order.facts.budget for bench in benches_of(made, Settings()) for cell in bench.cells for order in cell.orders
    ]


def test_every_combination_of_limits_is_a_run_of_its_own() -> None:
    made = design("1/4", budget_tokens=[6000, "none"], budget_calls=[6, 12], budget_cost=0.5)
    price = Price(1.0, 4.0)
    expected = [Budget(None, tokens, calls, 0.5, price) for tokens in (6000, None) for calls in (6, 12)]
    assert sorted(budgets_of(made), key=repr) == sorted(expected, key=repr)


def test_a_price_alone_has_the_cost_measured_and_limits_nothing() -> None:
    assert budgets_of(design("1/4")) == [Budget(price=Price(1.0, 4.0))]


def test_a_study_without_second_budgets_is_the_one_that_it_was_before_there_were_any() -> None:
    plain = StudyDesign.of(DESIGN)
    assert "price" not in plain.to_dict()
    assert not [name for name in plain.to_dict()["factors"] if name.startswith("budget")]
    none = StudyDesign.of({**DESIGN, "factors": {**DESIGN["factors"], "budget_calls": "none"}})
    assert none.to_dict() == plain.to_dict()
    assert design(budget_calls=[6]).study_id != design().study_id != design("1/4").study_id


@pytest.mark.parametrize(
    ("price", "factors", "said"),
    [
        (None, {"budget_calls": 0}, "factors.budget_calls must be a whole number from 1 up, not 0; try 12"),
        (None, {"budget_calls": "few"}, "factors.budget_calls: "),
        (None, {"budget_calls": True}, "factors.budget_calls: a truth value is no number"),
        (None, {"budget_tokens": 1.5}, "factors.budget_tokens: "),
        (None, {"budget_cost": 0.02}, 'factors.budget_cost: what tokens cost is not said; give price = "INPUT/OUTPUT"'),
        ("1/4", {"budget_cost": 0}, "factors.budget_cost must be above 0"),
        ("0/0", {"budget_cost": 1}, "factors.budget_cost needs a price above 0"),
        ("cheap", {}, "price must be INPUT/OUTPUT"),
    ],
)
def test_a_limit_that_cannot_be_used_is_named_with_what_can(price: str | None, factors: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        design(price, **factors)


def test_the_design_says_its_limits_and_its_price() -> None:
    shown = repr(design("1/4", budget_calls=[6, "none"]))
    assert "budget_calls: 6, none" in shown
    assert "price: 1/4 for a million tokens" in shown


def test_a_sweep_holds_each_run_to_the_limits_of_its_condition_and_its_manifest_has_them() -> None:
    made = design("1/4", alternative="unguarded,A", decision_timeout_s=60, budget_calls=[3, "none"])
    study = sweep(made, executor=InThisProcess())
    runs = study.runs.astype({"second_budgets": "str", "alternative": "str"}).set_index(
        ["second_budgets", "alternative"]
    )
    assert set(runs.index) == {(level, name) for level in ("3 calls", "none") for name in ("unguarded", "cooperative")}
    assert runs.loc[("3 calls", "cooperative"), ["stop_reason", "calls_spent"]].tolist() == ["call_budget", 3]
    assert runs.loc[("3 calls", "unguarded"), "calls_overspent"] > 0
    assert runs.loc[("none", "cooperative"), "calls_spent"] == runs.loc[("none", "unguarded"), "calls_spent"] > 3
    assert (runs["cost_spent"] > 0).all()
    written = study.manifest["design"]
    assert (written["price"], written["factors"]["budget_calls"]) == ("1/4", [3, "none"])
    assert "budget_tokens" not in written["factors"]
