from __future__ import annotations

import math

import pandas as pd
import pytest
from made_up_findings import left_alone, table
from sample_runs import MANIFEST, sample_run

from docmind_lab.analysis.findings import enforcement, recommend, scorecard
from docmind_lab.analysis.findings.second_budgets import needs_of, ordered_levels, spending_of
from docmind_lab.analysis.summary import Summary, summarise
from docmind_lab.analysis.tables.records import RunRecord


def budgeted(alternative: str, seed: int, used: float, limit: float = 6.0, **changes) -> RunRecord:
    """A run under a budget of calls that used so many of them."""
    shared = {
        "second_budgets": f"{limit:g} calls",
        "call_budget": limit,
        "calls_spent": used,
        "calls_overspent": max(0.0, used - limit),
        "deadline_propagation": alternative in ("cooperative", "hybrid"),
    }
    return sample_run(alternative, seed, **shared | changes)


def ended(alternative: str, seed: int, used: float = 6.0, **changes) -> RunRecord:
    """A run that its budget of calls ended, with nothing to show."""
    cut = {"outcome": "failed", "answered_in_time": False, "stop_reason": "call_budget", "source_recall": 0.0}
    return budgeted(alternative, seed, used, **cut | changes)


def runs_of(*, cooperative: list[RunRecord], control: tuple[float, ...] = (9.0, 9.0, 12.0)) -> pd.DataFrame:
    alone = [budgeted("unguarded", seed, used) for seed, used in enumerate(control)]
    timed = [budgeted("hard_timeout", seed, 9.0) for seed in range(3)]
    return table(*alone, *cooperative, *timed)


def said_of(runs: pd.DataFrame) -> Summary:
    return summarise(runs, MANIFEST)


def test_runs_that_a_budget_ended_are_counted_by_its_stop_reason() -> None:
    spending = spending_of(table(ended("cooperative", 0), ended("cooperative", 1), budgeted("cooperative", 2, 5.0)))
    assert spending is not None
    assert (spending.ended, spending.any_ended, spending.any_passed) == ({"calls": 2}, 2, 0)
    assert spending.text() == "the call budget ended 2 of 3 runs"


def test_where_a_budget_is_only_measured_it_is_said_how_far_runs_went_past_it() -> None:
    spending = spending_of(table(*(budgeted("hard_timeout", seed, used) for seed, used in enumerate((5.0, 9.0, 12.0)))))
    assert spending is not None
    assert not spending.keeps
    assert spending.text() == (
        "the second budget of 6 calls is measured only: passed in 2 of 3 runs, by 4.5 calls at the median and 6 at most"
    )


def test_what_was_under_way_as_a_budget_was_spent_is_said_of_who_enforces_it() -> None:
    tokens = {
        "token_budget": 1000.0,
        "tokens_spent": 1100.0,
        "tokens_overspent": 100.0,
        "second_budgets": "1000 tokens",
    }
    spending = spending_of(table(sample_run("cooperative", 0, stop_reason="token_budget", outcome="partial", **tokens)))
    assert spending is not None
    assert spending.keeps
    assert spending.text() == (
        "the token budget ended 1 of 1 runs; what was under way passed the token budget in 1 of 1 runs, by 100 tokens"
    )


def test_without_a_second_budget_nothing_is_said_of_one() -> None:
    runs = table(sample_run("cooperative", 0), sample_run("unguarded", 0))
    assert spending_of(runs) is None
    assert not said_of(runs).is_budgeted
    assert "budget" not in " ".join((said_of(runs).text(), *said_of(runs).sentences, *said_of(runs).advice))


def test_whom_a_budget_left_without_an_answer_is_not_chosen_and_the_cause_and_the_remedy_are_named() -> None:
    runs = runs_of(cooperative=[ended("cooperative", seed) for seed in range(3)])
    choice, remedy, *_ = said_of(runs).advice
    assert choice == (
        "Nothing to choose under 6 calls: A cooperative answered 0 of 3 in time, and a second budget ended 3. The "
        "others that held the deadline went past it: B hard timeout in 3 of 3 runs."
    )
    assert remedy == (
        "Not held to it, the control used 9 to 12 calls (9 at the median) in 3 answered runs; with 6 calls none of "
        "them can finish. Give --budget-calls 12 or more, or no such limit."
    )
    assert not any(line.startswith("Settings") for line in said_of(runs).advice)


def test_of_a_budget_that_some_runs_keep_within_those_that_keep_to_it_are_chosen() -> None:
    answered = [budgeted("cooperative", seed, 9.0, limit=10.0) for seed in range(2)]
    runs = table(
        *(budgeted("unguarded", seed, used, limit=10.0) for seed, used in enumerate((9.0, 9.0, 12.0))),
        *answered,
        ended("cooperative", 2, 10.0, limit=10.0),
        *(budgeted("hard_timeout", seed, used, limit=10.0) for seed, used in enumerate((9.0, 9.0, 12.0))),
    )
    choice, *others = said_of(runs).advice
    (remedy,) = [line for line in others if "Give --budget-calls" in line]
    assert choice.startswith("Choose A cooperative: under it every caller was back within 150 ms of the deadline")
    assert "no call was begun beyond the second budget (10 calls)" in choice
    assert "2 of 3 runs were answered in time" in choice
    assert any(line.startswith("Settings: ") for line in others)
    assert "with 10 calls 1 of them cannot finish. Give --budget-calls 12 or more" in remedy


def test_who_did_not_look_at_a_budget_and_did_not_meet_it_is_said_to_have_been_lucky() -> None:
    runs = table(*(budgeted("hard_timeout", seed, 5.0) for seed in range(3)))
    assert "B hard timeout did not look at it, and no run came that far." in said_of(runs).advice[0]


def test_when_nobody_looks_at_a_budget_it_is_said_who_would() -> None:
    runs = table(*(budgeted("hard_timeout", seed, 9.0) for seed in range(3)))
    choice, remedy, *_ = said_of(runs).advice
    assert choice.startswith("Nothing to choose under 6 calls: none that was run keeps to it")
    assert "B hard timeout in 3 of 3 runs. A and E look at it" in choice
    assert "the arms that do not enforce it used 9 calls in 3 answered runs; with 6 calls none" in remedy


def test_what_a_run_needs_is_not_made_up_where_no_run_was_left_alone() -> None:
    runs = table(*(ended("cooperative", seed) for seed in range(3)))
    assert list(needs_of(runs)) == []
    assert "what a run needs is not known" in " ".join(said_of(runs).advice)


@pytest.mark.parametrize(("most", "said"), [(0.0023567, "0.00236"), (2.0, "2"), (123456.0, "124000")])
def test_a_cost_to_give_is_rounded_up(most: float, said: str) -> None:
    cost = {"second_budgets": "0.001 cost", "cost_budget": 0.001, "cost_spent": most, "cost_overspent": most - 0.001}
    (need,) = needs_of(table(sample_run("unguarded", 0, **cost)))
    assert f"--budget-cost {said} or more" in need.text()
    assert float(said) >= most


def test_nobody_in_time_is_not_called_enough() -> None:
    late = {"answered_in_time": False, "outcome": "partial"}
    advice = said_of(table(sample_run("cooperative", 0, **late))).advice
    assert "Nobody was answered in time: this says who stops best, not that 2 s are enough." in advice


def test_a_recommendation_names_the_budget_that_ended_runs_and_not_the_decision_timeout() -> None:
    found = recommend(runs_of(cooperative=[ended("cooperative", seed) for seed in range(80)]))
    sentence = next(line for line in found.sentences if line.startswith("A cooperative"))
    assert "the call budget ended 80 of 80 runs, which no decision timeout changes" in sentence
    assert "longer decision timeout is needed" not in sentence


def test_who_reached_the_target_by_going_past_a_budget_is_not_recommended() -> None:
    past = [budgeted("hard_timeout", seed, 9.0) for seed in range(80)]
    alone = recommend(table(*past))
    assert alone.settings == ""
    assert "B hard timeout reached it, but went past the second budget" in alone.text()
    beside = recommend(table(*past, *(budgeted("cooperative", seed, 6.0) for seed in range(80))))
    assert "Choose A cooperative, with 2 s" in beside.text()
    assert "B hard timeout reached it, but went past the second budget" in beside.text()


def test_conditions_of_several_budgets_stand_from_the_tightest_to_none() -> None:
    runs = table(
        *(budgeted("cooperative", 0, 5.0, limit=limit) for limit in (12.0, 6.0, 100.0)), sample_run("cooperative", 0)
    )
    assert list(ordered_levels(runs)["second_budgets"].cat.categories) == ["6 calls", "12 calls", "100 calls", "none"]
    assert list(said_of(runs).table["second_budgets"]) == ["6 calls", "12 calls", "100 calls", "none"]


def test_a_run_that_a_second_budget_ended_is_no_evidence_that_its_deadline_is_enforced() -> None:
    changes = {"outcome": "partial", "answered_in_time": False, "second_budgets": "6 calls"}
    runs = table(
        left_alone(0, second_budgets="6 calls"), sample_run("cooperative", 0, stop_reason="call_budget", **changes)
    )
    assert enforcement(runs)["verdict"].tolist() == ["not tested"]
    by_deadline = runs.assign(stop_reason=["", "deadline"])
    assert enforcement(by_deadline)["verdict"].tolist() == ["enforces"]


def test_a_scorecard_names_who_went_past_the_second_budget() -> None:
    runs = runs_of(cooperative=[budgeted("cooperative", seed, 6.0) for seed in range(3)])
    card = scorecard(runs)
    assert card.beyond == ("control unguarded in 3 of 3 runs", "B hard timeout in 3 of 3 runs")
    assert "second budget 6 calls" in card.title
    (said,) = (line for line in card.sentences if line.startswith("Past the second budget, which they do not look at"))
    # Who keeps to it may do as well all the same.
    assert said.endswith("does not allow, and says nothing of what they would have within it.")
    plain = runs.assign(second_budgets="none", calls_overspent=math.nan)
    assert not any("second budget" in line for line in scorecard(plain).sentences)
