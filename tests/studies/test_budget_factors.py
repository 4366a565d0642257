"""Second budgets as factors of a study: levels, conditions of their own, and what is enough."""

from __future__ import annotations

import math
import re
from typing import Any

import pandas as pd
import pytest
from sample_runs import MANIFEST, sample_run
from small_studies import DESIGN

from docmind_lab.analysis.findings.second_budgets import budget_sufficiency, levels_in_words
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.summary import summarise
from docmind_lab.analysis.tables.frames import to_frame
from docmind_lab.analysis.text import join_names
from docmind_lab.core.budgets import Budget, Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import in_this_process
from docmind_lab.experiments.sweeps.cells import benches_of
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.experiments.sweeps.estimate import estimate
from docmind_lab.experiments.sweeps.runner import sweep


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


@pytest.fixture(scope="module")
def swept() -> Study:
    made = design("1/4", alternative="unguarded,A", decision_timeout_s=60, budget_calls=[3, "none"])
    return sweep(made, executor=in_this_process()())


def test_a_sweep_holds_each_run_to_the_limits_of_its_condition(swept: Study) -> None:
    runs = swept.runs.astype({"second_budgets": "str", "alternative": "str"}).set_index(
        ["second_budgets", "alternative"]
    )
    assert set(runs.index) == {(level, name) for level in ("3 calls", "none") for name in ("unguarded", "cooperative")}
    assert runs.loc[("3 calls", "cooperative"), ["stop_reason", "calls_spent"]].tolist() == ["call_budget", 3]
    assert runs.loc[("3 calls", "unguarded"), "calls_overspent"] > 0
    assert runs.loc[("none", "cooperative"), "calls_spent"] == runs.loc[("none", "unguarded"), "calls_spent"] > 3
    assert (runs["cost_spent"] > 0).all()


def test_the_manifest_of_a_sweep_has_its_limits_and_its_price(swept: Study) -> None:
    said = swept.manifest["design"]
    assert (said["price"], said["factors"]["budget_calls"]) == ("1/4", [3, "none"])
    assert "budget_tokens" not in said["factors"]


def test_an_estimate_is_of_runs_under_each_limit() -> None:
    found = estimate(design(budget_calls=[3, "none"], decision_timeout_s=60), Settings(), workers=1)
    assert (found.runs, found.how) == (2, "from a pilot of 2 runs")


def limited(limit: float, seed: int, *, is_ended: bool, **changes: Any) -> Any:
    level = "none" if math.isnan(limit) else f"{limit:g} calls"
    shared = {"second_budgets": level, "call_budget": limit, "run_id": f"{level}-{seed}-{changes}"}
    ended = {"stop_reason": "call_budget", "outcome": "partial", "answered_in_time": False} if is_ended else {}
    return sample_run("cooperative", seed, **shared | ended | changes)


def table(ended: dict[float, int], runs: int = 4, **changes: Any) -> pd.DataFrame:
    rows = [limited(limit, seed, is_ended=seed < n, **changes) for limit, n in ended.items() for seed in range(runs)]
    return to_frame("runs", rows)


def test_enough_is_the_smallest_limit_that_ended_no_run_and_how_sure_that_is_is_said() -> None:
    (said,) = budget_sufficiency(table({12.0: 0, 6.0: 4, 9.0: 2, math.nan: 0}))
    assert said == (
        "A cooperative: 6 calls ended 4 of 4 runs and 9 calls ended 2 of 4 runs; 12 calls is the smallest limit tried "
        "that ended none of 4 (at most 49.0% of runs, by its 95% Wilson interval), and 4 were answered in time."
    )


def test_runs_that_another_budget_ended_are_said_to_be_no_evidence_that_a_limit_is_enough() -> None:
    under_both = {"second_budgets": "both", "cost_budget": 0.02}
    cut = {"stop_reason": "cost_budget", "outcome": "partial", "answered_in_time": False}
    rows = [
        limited(limit, seed, is_ended=False, **under_both | (cut if seed else {}))
        for limit in (6.0, 9.0)
        for seed in range(3)
    ]
    (said,) = budget_sufficiency(to_frame("runs", rows))
    assert said.startswith("A cooperative: 6 calls is the smallest limit tried that ended none of 3 (at most")
    assert said.endswith(
        "and 1 was answered in time; the cost budget ended 2 of them, and what those would have used is not known."
    )


def test_levels_of_several_limits_can_be_told_apart_in_a_list() -> None:
    levels = ["none", "6 calls", "6 calls, 0.02 cost"]
    assert join_names(levels_in_words(levels), "or") == "6 calls and 0.02 cost, 6 calls or none"
    rows = [sample_run("cooperative", 0, second_budgets=level, run_id=level) for level in levels]
    assert (
        " · second budget 6 calls and 0.02 cost, 6 calls or none · "
        in summarise(to_frame("runs", rows), MANIFEST).title
    )


def test_a_limit_below_one_that_ended_a_run_is_not_enough_however_it_did() -> None:
    (said,) = budget_sufficiency(table({6.0: 0, 9.0: 1, 12.0: 0}))
    assert "12 calls is the smallest" in said
    (said,) = budget_sufficiency(table({6.0: 4, 9.0: 1}))
    assert said.endswith("no limit that was tried ended none, so try more than 9.")


def test_each_condition_has_its_own_enough_and_a_single_limit_none() -> None:
    both = pd.concat([table({6.0: 4, 9.0: 0}), table({6.0: 4, 9.0: 4}, fault="hang")], ignore_index=True)
    said = list(budget_sufficiency(both.astype({"fault": "str"}).astype({"fault": "category"})))
    assert [line.partition(":")[0] for line in said] == ["A cooperative (fault hang)", "A cooperative (fault none)"]
    assert list(budget_sufficiency(table({6.0: 4}))) == []


def test_the_summary_of_several_limits_says_what_is_enough() -> None:
    summary = summarise(table({6.0: 4, 9.0: 0}), MANIFEST)
    assert summary.sentences[0].startswith("A cooperative: 6 calls ended 4 of 4 runs; 9 calls is the smallest")
    assert "second budget 6 calls or 9 calls" in summary.title
