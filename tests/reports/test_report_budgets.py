"""What a report says of second budgets: what was asked, its tables, what not to conclude."""

from __future__ import annotations

import math

import pandas as pd
from sample_runs import sample_run, study_of

from docmind_lab.analysis.conditions import in_words
from docmind_lab.analysis.study import Study
from docmind_lab.interfaces.reports.build import _first_advice
from docmind_lab.interfaces.reports.figures import MOST_CONDITIONS
from docmind_lab.interfaces.reports.model import Facts, Table
from docmind_lab.interfaces.reports.sections import limits_section, question_section
from docmind_lab.interfaces.reports.tables import arms_tables


def budgeted_study() -> Study:
    """Six calls end one run of A's three; B goes past them in all; in another condition nobody has any."""
    shared = {"second_budgets": "6 calls", "call_budget": 6.0}
    within = [
        sample_run("cooperative", seed, calls_spent=6.0, calls_overspent=0.0, **shared, stop_reason=stop)
        for seed, stop in enumerate(("", "", "call_budget"))
    ]
    past = [sample_run("hard_timeout", seed, calls_spent=9.0, calls_overspent=3.0, **shared) for seed in range(3)]
    free = [sample_run("cooperative", seed, run_id=f"free-{seed}") for seed in range(3)]
    return study_of([*within, *past, *free])


def arms(runs: pd.DataFrame) -> list[Table]:
    return arms_tables(runs, ["second_budgets"], 4)


def test_arms_have_what_second_budgets_did_to_them_in_their_table() -> None:
    limited, free = arms(budgeted_study().runs)
    assert limited.caption == "Every arm, second budget 6 calls"
    assert limited.shown["ended by a second budget"].tolist() == ["1", "0"]
    assert limited.shown["past a second budget"].tolist() == ["0", "3"]
    assert limited.shown["calls of the model per run"].tolist() == ["6.0 (all alike)", "9.0 (all alike)"]
    assert free.caption == "Every arm, no second budget"
    assert "past a second budget" not in free.shown


def test_in_one_table_of_all_conditions_arms_without_a_second_budget_have_a_dash() -> None:
    (together,) = arms_tables(budgeted_study().runs, ["second_budgets"], 1)
    assert together.shown["past a second budget"].tolist() == ["0", "3", "–"]
    assert together.shown["calls of the model per run"].tolist()[-1] == "–"


def test_what_an_arm_takes_without_a_limit_stands_beside_what_it_is_limited_to() -> None:
    runs = budgeted_study().runs
    runs["calls_spent"] = runs["calls_spent"].fillna(12.0)
    (together,) = arms_tables(runs, ["second_budgets"], 1)
    assert together.shown["calls of the model per run"].tolist()[-1] == "12.0 (all alike)"
    assert together.shown["past a second budget"].tolist()[-1] == "–"
    _, free = arms(runs)
    assert free.shown["calls of the model per run"].tolist() == ["12.0 (all alike)"]
    nobody = arms_tables(runs.assign(call_budget=math.nan, second_budgets="none"), [], 4)[0]
    assert "calls of the model per run" not in nobody.shown


def test_of_many_conditions_those_under_whose_budget_nobody_is_chosen_stand_together() -> None:
    past = [
        sample_run(
            "hard_timeout",
            0,
            second_budgets=f"{limit} calls",
            call_budget=float(limit),
            calls_spent=limit + 1.0,
            calls_overspent=1.0,
        )
        for limit in range(2, 3 + MOST_CONDITIONS)
    ]
    runs = study_of([*past, sample_run("hard_timeout", 0)]).runs
    nothing, only = sorted(_first_advice(runs, ["second_budgets"]))
    assert only == "Only B hard timeout was run: no second budget."
    assert nothing.startswith("Nothing to choose: second budget 2 calls; second budget 3 calls; ")


def test_what_was_asked_names_the_second_budgets_where_there_are_some() -> None:
    (facts,) = (block for block in question_section(budgeted_study()).blocks if isinstance(block, Facts))
    assert facts.items["Second budgets"] == "6 calls and no second budget"
    plain = Study(*(getattr(study_of([sample_run("cooperative", 0)]), name) for name in ("runs", "calls", "events")))
    (without,) = (block for block in question_section(plain).blocks if isinstance(block, Facts))
    assert "Second budgets" not in without.items


def test_what_went_past_a_budget_is_no_evidence_of_what_it_allows() -> None:
    runs = budgeted_study().runs
    said = [line for block in limits_section(runs, [], [], [], complete=True).blocks for line in block.lines]
    assert (
        "Second budgets are measured and not enforced in B hard timeout: 3 of their 3 runs went past one, and what "
        "these answered is no evidence of what the budget allows."
    ) in said
    tokens = runs.assign(token_budget=[100.0 if limit == "6 calls" else math.nan for limit in runs["second_budgets"]])
    assert any("lower bounds" in line for line in limits_section(tokens, [], [], [], complete=True).blocks[0].lines)
    assert not any("lower bounds" in line for line in said)


def test_conditions_say_their_second_budget() -> None:
    assert in_words({"second_budgets": "6 calls"}, ["second_budgets"]) == "second budget 6 calls"
    assert in_words({"second_budgets": "none"}, ["second_budgets"]) == "no second budget"
