"""Whole runs under second budgets, in virtual time: who enforces them, what the caller keeps, and what is measured."""

from __future__ import annotations

import math
from typing import Any

import pytest
from virtual_runs import VirtualRuns, details

from docmind_lab.core.budgets import Budget, Price
from docmind_lab.experiments.measurement.measured_run import MeasuredRun

# Without a second budget the first question takes 9 calls, 5,710 tokens and 9.6 s. Documents come with the fourth.
AMPLE_S, CALLS, TOKENS = 30.0, 9, 5710
PRICE = Price(1.0, 2.0)


def measured(runs: VirtualRuns, alternative: str, *faults: str, **budget: Any) -> MeasuredRun:
    return runs.measure(alternative, *faults, timeout_s=AMPLE_S, budget=Budget(**budget))


@pytest.mark.parametrize("alternative", ["A", "C:propagate", "D:propagate", "E", "F:propagate"])
def test_who_propagates_makes_no_call_beyond_the_budget_and_keeps_what_there_is(
    virtual_runs: VirtualRuns, alternative: str
) -> None:
    run = measured(virtual_runs, alternative, calls=6)
    assert (run.run.outcome, run.run.stop_reason) == ("partial", "call_budget")
    assert (run.run.calls_spent, run.run.calls_overspent, run.run.call_budget) == (6, 0, 6)
    assert run.run.documents_count == 5
    assert len([call for call in run.calls if call.seen_from == "server" and call.kind == "llm"]) == 6
    assert [call.outcome for call in run.calls if call.kind == "llm" and call.seen_from == "client"][-1] == "refused"
    assert details(run, "refused") == [{"budget": "calls", "kind": "llm"}]


@pytest.mark.parametrize("alternative", ["unguarded", "B", "C", "D"])
def test_who_looks_at_time_only_goes_on_and_the_overspending_is_measured(
    virtual_runs: VirtualRuns, alternative: str
) -> None:
    run = measured(virtual_runs, alternative, calls=6, tokens=1000, cost=0.001, price=PRICE).run
    assert (run.outcome, run.stop_reason, run.second_budgets) == (
        "answered",
        "",
        "1000 tokens, 6 calls, 0.001 cost",
    )
    assert (run.calls_spent, run.tokens_spent) == (CALLS, TOKENS)
    assert (run.calls_overspent, run.tokens_overspent) == (CALLS - 6, TOKENS - 1000)
    assert run.cost_overspent == pytest.approx(run.cost_spent - 0.001)


def test_a_run_without_second_budgets_still_says_what_it_spent(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A", price=PRICE)
    client = [call for call in run.calls if call.kind == "llm" and call.seen_from == "client"]
    read, written = sum(call.input_tokens for call in client), sum(call.output_tokens for call in client)
    assert (run.run.tokens_spent, run.run.calls_spent) == (read + written, CALLS)
    assert run.run.cost_spent == pytest.approx((read + 2 * written) / 1e6)
    assert all(math.isnan(value) for value in (run.run.token_budget, run.run.tokens_overspent, run.run.cost_overspent))
    assert run.run.second_budgets == "none"


def test_a_call_under_way_passes_the_tokens_by_itself_only(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A", tokens=1000)
    last = [call for call in run.calls if call.kind == "llm" and call.seen_from == "client"][-2]
    assert (run.run.outcome, run.run.stop_reason) == ("partial", "token_budget")
    assert 0 < run.run.tokens_overspent < last.input_tokens + last.output_tokens


def test_a_budget_of_cost_ends_a_run_by_its_name(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A", cost=0.002, price=PRICE).run
    assert (run.outcome, run.stop_reason, run.cost_budget) == ("partial", "cost_budget", 0.002)
    assert run.cost_spent >= 0.002


def test_a_run_that_spent_its_budget_with_nothing_to_show_failed_and_was_not_timed_out(
    virtual_runs: VirtualRuns,
) -> None:
    run = measured(virtual_runs, "A", calls=1).run
    assert (run.outcome, run.stop_reason, run.documents_count) == ("failed", "call_budget", 0)


def test_retries_count_as_calls_of_a_run(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A", "http_500@1:planner", calls=CALLS).run
    plain = measured(virtual_runs, "A", "http_500@1:planner").run
    assert plain.calls_spent == plain.llm_calls
    assert run.calls_spent <= CALLS


def test_the_deadline_still_ends_a_run_whose_other_budgets_are_ample(virtual_runs: VirtualRuns) -> None:
    run = virtual_runs.measure("A", timeout_s=5.0, budget=Budget(tokens=100_000, calls=100)).run
    assert (run.outcome, run.stop_reason) == ("partial", "deadline")
    assert (run.tokens_overspent, run.calls_overspent) == (0, 0)


def test_the_call_that_chooses_a_route_counts_too(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A", calls=3)
    roles = [call.role for call in run.calls if call.kind == "llm" and call.seen_from == "server"]
    assert roles == ["supervisor", "router", "supervisor"]
