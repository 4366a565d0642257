"""Second budgets: what one may be, what a meter says of it, and how tables written before them are read."""

from __future__ import annotations

import json
import math
import re
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from in_threads import in_threads
from sample_runs import sample_run, sample_study

import docmind_lab as dl
from docmind_lab.core.budgets import Budget, Meter, Price, Spent
from docmind_lab.core.errors import (
    BudgetError,
    CallsSpent,
    ConfigurationError,
    CostSpent,
    DeadlineError,
    SpendingRefused,
    TokensSpent,
)
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.findings.study import Study
from docmind_lab.tables.conditions import by_condition, varying
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.manifest import without_checksums
from docmind_lab.tables.records import TABLES

PRICE = Price(1.0, 4.0)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"time_s": 0}, "budget.time_s must be a finite number of seconds above 0"),
        ({"tokens": 0}, "budget.tokens must be a whole number from 1 up, not 0; try 6000"),
        ({"tokens": 10.5}, "budget.tokens must be a whole number"),
        ({"calls": True}, "budget.calls must be a whole number"),
        ({"calls": -1}, "budget.calls must be a whole number from 1 up, not -1; try 12"),
        ({"cost": math.nan, "price": PRICE}, "budget.cost must be a finite number"),
        ({"cost": 0, "price": PRICE}, "budget.cost must be a finite number above 0, not 0; try 0.02, or leave it out"),
        ({"cost": 0.1}, "budget.cost needs a price above 0: give price=Price("),
        ({"cost": 0.1, "price": Price(0, 0)}, "budget.cost needs a price above 0"),
        ({"price": 0.15}, "budget.price must be a Price"),
    ],
)
def test_a_budget_that_cannot_be_used_is_refused_by_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(named)):
        Budget(**values)


@pytest.mark.parametrize("text", ["0.15", "a/b", "1/2/3", "", "-1/2", "nan/1"])
def test_a_price_is_written_as_two_numbers_of_0_or_more(text: str) -> None:
    with pytest.raises(ConfigurationError, match="price"):
        Price.parse(text)
    assert Price.parse("0.15/0.60") == Price(0.15, 0.60)


@pytest.mark.parametrize(
    ("budget", "level", "is_second"),
    [
        (Budget(), "none", False),
        (Budget(time_s=5, price=PRICE), "none", False),
        (Budget(tokens=6000, calls=12, cost=0.02, price=PRICE), "6000 tokens, 12 calls, 0.02 cost", True),
        (Budget(tokens=12_345_678), "12345678 tokens", True),
    ],
)
def test_the_tables_name_the_second_budgets_and_nothing_else(budget: Budget, level: str, is_second: bool) -> None:
    assert (budget.level, budget.is_second) == (level, is_second)


# ---- the meter


def test_a_call_is_refused_when_nothing_is_left_and_the_error_says_of_what() -> None:
    meter = Meter(Budget(calls=2))
    for _ in range(2):
        meter.admit("planner", "middleware")
    with pytest.raises(
        CallsSpent, match="planner: a call was refused at middleware: 2 of 2 calls are spent"
    ) as refused:
        meter.admit("planner", "middleware")
    error = refused.value
    assert (error.budget, error.limit, error.spent, error.role, error.source) == (
        "calls",
        2,
        2,
        "planner",
        "middleware",
    )
    assert error.stop_reason == "call_budget"
    assert meter.spent() == Spent(tokens=0, calls=2, cost=pytest.approx(math.nan, nan_ok=True))


def test_several_calls_under_way_pass_the_limit_by_no_more_than_they_use() -> None:
    meter = Meter(Budget(tokens=100))
    for _ in range(3):
        meter.admit("a", "middleware")
    for _ in range(3):
        meter.charge(80, 10)
    assert meter.spent().tokens == 270
    assert isinstance(meter.refusal("a", "middleware"), TokensSpent)


def test_cost_is_charged_by_what_is_read_and_written() -> None:
    meter = Meter(Budget(cost=0.0003, price=PRICE))
    for _ in range(3):  # a tenth of a thousandth is no binary number; three of them are the whole budget
        meter.admit("a", "middleware")
        meter.charge(60, 10)
    with pytest.raises(CostSpent) as refused:
        meter.admit("a", "middleware")
    assert refused.value.spent == pytest.approx(0.0003)


def test_second_budgets_are_no_timeouts_and_share_a_root_with_them() -> None:
    assert issubclass(SpendingRefused, BudgetError)
    assert issubclass(DeadlineError, BudgetError)
    assert not issubclass(SpendingRefused, TimeoutError)


def test_of_many_threads_no_more_get_a_call_than_there_are_calls() -> None:
    meter, admitted, begin = Meter(Budget(calls=50)), [], threading.Barrier(8)

    def ask() -> None:
        begin.wait()
        for _ in range(20):
            try:
                meter.admit("a", "middleware")
            except CallsSpent:
                continue
            meter.charge(1, 1)
            admitted.append(1)

    in_threads(*[ask] * 8)
    assert (len(admitted), meter.spent().calls, meter.spent().tokens) == (50, 50, 100)


# ---- comparisons


def test_the_time_of_a_budget_is_the_decision_timeout_and_is_given_once() -> None:
    with pytest.raises(ConfigurationError, match=re.escape("budget.time_s is 5 and the decision timeout 20")):
        dl.compare(dl.docmind(budget=Budget(time_s=5)), 20)
    orders = Comparison(decision_timeout_s=5, budget=Budget(time_s=5, calls=4)).orders()
    assert {order.facts.budget.calls for order in orders} == {4}


def test_a_comparison_without_second_budgets_has_the_name_that_it_had_before_there_were_any() -> None:
    assert "budget" not in Comparison().design()
    assert Comparison(budget=Budget(time_s=20.0)).study_id == Comparison().study_id
    budgeted = Comparison(budget=Budget(tokens=10, price=PRICE))
    assert budgeted.design()["budget"] == {
        "tokens": 10,
        "price": {"input_per_million": 1.0, "output_per_million": 4.0},
    }
    assert budgeted.study_id != Comparison().study_id
    assert "second budgets: 10 tokens" in repr(budgeted)


def test_budgets_are_a_condition_of_their_own() -> None:
    levels = ("none", "6000 tokens", "9000 tokens")
    runs = to_frame("runs", [sample_run("cooperative", 0, second_budgets=level) for level in levels])
    assert varying(runs) == ["second_budgets"]
    assert [(condition["second_budgets"], len(group)) for condition, group in by_condition(runs)] == [
        ("6000 tokens", 1),
        ("9000 tokens", 1),
        ("none", 1),
    ]


# ---- older tables


def test_a_study_written_before_second_budgets_still_opens(tmp_path: Path) -> None:
    sample_study(runs=2).save(tmp_path)
    new = [column.name for column in TABLES["runs"][1] if column.since > 1]
    older = pd.read_parquet(tmp_path / "runs.parquet").drop(columns=new)
    older.to_parquet(tmp_path / "runs.parquet", index=False)
    # Manifests of that time had no checksums.
    manifest = without_checksums(json.loads((tmp_path / "manifest.json").read_text())) | {"schema_version": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    study = Study.load(tmp_path)
    assert SCHEMA_VERSION > 1
    assert {"second_budgets", "cost_overspent", "error_type"} <= set(new)
    assert study.runs["tokens_spent"].isna().all()
    assert set(study.runs["second_budgets"]) == {"none"}
    assert study.runs.dtypes.astype(str).equals(sample_study(runs=2).runs.dtypes.astype(str))
    assert "A  cooperative" in study.report()
