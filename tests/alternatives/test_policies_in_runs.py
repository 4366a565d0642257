"""Whole runs in virtual time with policies for the time of their model calls (policies.md 2)."""

from __future__ import annotations

from typing import Any

import pytest
from virtual_runs import VirtualRuns, details

from docmind_lab.core.budgets import Budget
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.records import CallRecord

# Without a fault the first question takes 10.1 s, of which synthesis is under way from 4.072 to 7.256.
BEGUN_S, TAKES_S, TIMEOUT_S = 4.072, 3.184, 20.0
PROPAGATING = ("A", "B:propagate", "C:propagate", "D:propagate", "E", "F:propagate")


def measured(virtual_runs: VirtualRuns, name: str, *faults: str, **options: Any) -> MeasuredRun:
    return virtual_runs.measure(name, *faults, timeout_s=TIMEOUT_S, **options)


def calls(run: MeasuredRun, seen_from: str, role: str = "synthesis") -> list[CallRecord]:
    return [call for call in run.calls if call.seen_from == seen_from and call.role == role]


@pytest.mark.parametrize("name", PROPAGATING)
def test_a_hedge_gets_the_answer_and_its_loser_is_cancelled_at_the_seam(virtual_runs: VirtualRuns, name: str) -> None:
    run = measured(virtual_runs, f"{name}+hedge:2s", "hang@1:synthesis")
    first, second = calls(run, "client")
    assert (first.outcome, second.outcome) == ("cancelled", "ok")
    assert second.started_at_s == pytest.approx(BEGUN_S + 2, abs=0.01)
    assert first.ended_at_s == pytest.approx(second.ended_at_s)
    # The server sees its client leave at that instant.
    at_server = calls(run, "server")
    assert [call.outcome for call in at_server] == ["cancelled", "ok"]
    assert at_server[0].ended_at_s == pytest.approx(second.ended_at_s)
    assert details(run, "hedged") == [{"after_s": 2.0, "kind": "llm"}]
    assert run.run.outcome == "answered"
    assert (run.run.threads_left, run.run.work_overrun_s, run.run.work_censored) == (0, 0.0, False)
    assert second.output_tokens > 0, "the tokens are those of the answer that counts"


def test_without_a_hedge_the_same_run_waits_until_its_deadline(virtual_runs: VirtualRuns) -> None:
    assert measured(virtual_runs, "A", "hang@1:synthesis").run.returned_at_s == TIMEOUT_S


@pytest.mark.parametrize("name", ["A", "E"])
def test_a_loser_that_its_server_does_not_stop_is_paid_for(virtual_runs: VirtualRuns, name: str) -> None:
    """The first request wins at 7.256 s; the second began a second after it, with a latency of its own."""
    stops, goes_on = (measured(virtual_runs, f"{name}+hedge:1s", behaviour=each) for each in (STOPS, GOES_ON))
    wins_at_s = BEGUN_S + TAKES_S
    stopped, paid = calls(stops, "server")[1], calls(goes_on, "server")[1]
    assert calls(stops, "client")[1].outcome == calls(goes_on, "client")[1].outcome == "cancelled"
    assert stopped.ended_at_s == pytest.approx(wins_at_s, abs=0.001)
    assert paid.ended_at_s > wins_at_s + 0.5
    assert paid.output_tokens > stopped.output_tokens > 0
    # The caller has the same answer at the same instant.
    assert goes_on.run.returned_at_s == stops.run.returned_at_s
    assert goes_on.run.answer_score == stops.run.answer_score


def test_a_hedge_that_its_call_does_not_need_sends_nothing(virtual_runs: VirtualRuns) -> None:
    plain, hedged = measured(virtual_runs, "A"), measured(virtual_runs, "A+hedge:60s")
    assert [call.outcome for call in calls(hedged, "client")] == ["ok"]
    assert hedged.run.returned_at_s == plain.run.returned_at_s
    assert not details(hedged, "hedged")


def test_a_budget_of_calls_counts_the_second_request(virtual_runs: VirtualRuns) -> None:
    run = measured(virtual_runs, "A+hedge:1s", budget=Budget(calls=9)).run
    assert run.calls_spent == 9
    assert run.calls_overspent == 0


@pytest.mark.parametrize("name", ["A", "C:propagate"])
def test_both_requests_end_with_the_deadline(virtual_runs: VirtualRuns, name: str) -> None:
    run = measured(virtual_runs, f"{name}+hedge:2s", "hang:synthesis")
    assert run.run.caller_overrun_s == run.run.work_overrun_s == 0.0
    assert {call.ended_at_s for call in calls(run, "server")} == {TIMEOUT_S}
    assert len(calls(run, "server")) == 2
    assert run.run.threads_left == 0
