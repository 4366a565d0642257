from __future__ import annotations

from made_up_findings import left_alone, table
from sample_runs import MANIFEST, sample_run

from docmind_lab.findings import enforcement, recommend
from docmind_lab.findings.endings import budget_notes
from docmind_lab.findings.summary import summarise
from docmind_lab.tables.records import RunRecord

CUT = {"outcome": "failed", "answered_in_time": False, "stop_reason": "call_budget", "source_recall": 0.0}


def budgeted(alternative: str, seed: int, used: float, limit: float = 6.0, **changes) -> RunRecord:
    """A run under a budget of calls that used so many of them."""
    shared = {"second_budgets": f"{limit:g} calls", "call_budget": limit, "calls_overspent": max(0.0, used - limit)}
    propagates = alternative in ("cooperative", "hybrid")
    return sample_run(alternative, seed, **shared | {"deadline_propagation": propagates} | changes)


def test_runs_that_a_budget_ended_are_counted_and_named_apart_from_failures() -> None:
    runs = table(*(budgeted("cooperative", seed, 6.0, **(CUT if seed < 2 else {})) for seed in range(3)))
    assert list(budget_notes(runs)) == ["A cooperative: the call budget ended 2 of 3 runs."]
    summary = summarise(runs, MANIFEST)
    assert summary.display_table()["ended by budget"].tolist() == [2]
    assert "A cooperative: the call budget ended 2 of 3 runs." in summary.advice
    assert not any(line.startswith("Failed") for line in summary.advice)


def test_without_a_budget_nothing_is_said_of_one() -> None:
    summary = summarise(table(sample_run("cooperative", 0), sample_run("unguarded", 0)), MANIFEST)
    assert "budget" not in " ".join((summary.text(), *summary.sentences, *summary.advice))


def test_who_went_past_a_budget_that_is_only_measured_there_is_not_chosen() -> None:
    past = [budgeted("hard_timeout", seed, 9.0) for seed in range(3)]
    first, *others = summarise(
        table(*past, *(budgeted("cooperative", seed, 6.0) for seed in range(3))), MANIFEST
    ).advice
    assert first.startswith("Choose A cooperative")
    assert "Not chosen, because runs went past a budget that is only measured there: B hard timeout." in others
    assert "B hard timeout only measures its budget: 3 of 3 runs went past it." in others
    alone = summarise(table(*past), MANIFEST).advice
    assert alone[0] == "Nothing to choose: runs under B hard timeout went past a budget that is only measured there."


def test_a_recommendation_does_not_ask_for_a_longer_timeout_where_a_budget_ended_the_runs() -> None:
    runs = table(*(budgeted("cooperative", seed, 6.0, **CUT) for seed in range(80)))
    (sentence, *_) = recommend(runs).sentences
    assert "the call budget ended 80 of 80; no timeout would have them answered" in sentence
    assert "longer decision timeout is needed" not in sentence


def test_who_reached_the_target_by_going_past_a_budget_is_not_recommended() -> None:
    past = [budgeted("hard_timeout", seed, 9.0) for seed in range(80)]
    assert recommend(table(*past)).settings == ""
    beside = recommend(table(*past, *(budgeted("cooperative", seed, 6.0) for seed in range(80))))
    assert "Choose A cooperative, with 2 s" in beside.text()
    assert "runs went past a budget that is only measured there" in beside.text()


def test_a_run_that_a_budget_ended_is_no_evidence_that_its_deadline_is_enforced() -> None:
    changes = {"outcome": "partial", "answered_in_time": False, "second_budgets": "6 calls"}
    runs = table(
        left_alone(0, second_budgets="6 calls"), sample_run("cooperative", 0, stop_reason="call_budget", **changes)
    )
    assert enforcement(runs)["verdict"].tolist() == ["not tested"]
    assert enforcement(runs.assign(stop_reason=["", "deadline"]))["verdict"].tolist() == ["enforces"]


def test_conditions_of_several_budgets_stand_from_the_tightest_to_none() -> None:
    limits = [budgeted("cooperative", 0, 5.0, limit=limit) for limit in (12.0, 6.0, 100.0)]
    summary = summarise(table(*limits, sample_run("cooperative", 0)), MANIFEST)
    assert list(summary.table["second_budgets"]) == ["6 calls", "12 calls", "100 calls", "none"]
    assert "second budget 6 calls, second budget 12 calls, second budget 100 calls or no second budget" in summary.title
