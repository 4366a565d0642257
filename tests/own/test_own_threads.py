"""Sync nodes in async runs: a thread that a cancellation leaves behind is work until its own end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from graphs_asleep import NAP_S
from own_runs import measured_on_the_wall, services, simulated

from docmind_lab.experiments.measurement.run import MeasuredRun

GIVEN = {"question": "?"}
BUDGET_S = 0.2


def asleep(graph: str, alternative: str, decision_timeout_s: float = BUDGET_S) -> MeasuredRun:
    (measured,) = simulated(
        f"graphs_asleep:{graph}", alternatives=alternative, decision_timeout_s=decision_timeout_s, given=GIVEN
    )
    return measured


def events(measured: MeasuredRun, name: str) -> list[tuple[float, str, dict[str, Any]]]:
    return [(made.at_s, made.role, json.loads(made.detail)) for made in measured.events if made.event == name]


# E's caller waits 50 ms more for its graph to come to rest.
@pytest.mark.parametrize(("alternative", "returned_at_s"), [("C", BUDGET_S), ("E", BUDGET_S + 0.05), ("F", BUDGET_S)])
def test_a_run_is_quiet_when_the_thread_of_a_cancelled_node_is_done(alternative: str, returned_at_s: float) -> None:
    run = asleep("napping", alternative).run
    assert run.returned_at_s == pytest.approx(returned_at_s)
    assert (run.quiescent_at_s, run.work_overrun_s) == pytest.approx((NAP_S, NAP_S - BUDGET_S))
    assert not run.work_censored


def test_the_node_ends_with_its_task_and_the_thread_with_its_work() -> None:
    measured = asleep("napping", "C")
    assert events(measured, "thread_started") == [(0.0, "nap", {"node": "nap"})]
    assert events(measured, "node_ended") == [
        (BUDGET_S, "nap", {"node": "nap", "outcome": "CancelledError", "begun_at_s": 0.0})
    ]
    (ended,) = events(measured, "thread_ended")
    assert ended == (pytest.approx(NAP_S), "nap", {"begun_at_s": 0.0, "node": "nap"})


def test_a_thread_is_told_of_with_its_node_and_the_role_of_the_outermost() -> None:
    ((_, role, detail),) = events(asleep("inside", "C"), "thread_ended")
    assert (role, detail["node"]) == ("house", "house/nap")


def test_a_thread_that_is_not_done_by_the_horizon_has_begun_and_not_ended() -> None:
    # The horizon is at 5 times the budget, before the nap is over.
    measured = asleep("napping", "C", NAP_S / 6)
    assert (measured.run.work_censored, measured.run.threads_left) == (True, 1)
    assert measured.run.quiescent_at_s == measured.run.horizon_s
    assert [len(events(measured, name)) for name in ("thread_started", "thread_ended")] == [1, 0]


def test_a_sync_run_hands_nothing_to_threads() -> None:
    measured = asleep("napping", "A")
    assert measured.run.quiescent_at_s == pytest.approx(NAP_S)
    assert events(measured, "thread_started") == events(measured, "thread_ended") == []


@pytest.mark.wall
def test_on_the_wall_clock_too_a_thread_is_work_until_its_end() -> None:
    with services() as here:
        (measured,) = measured_on_the_wall(here, "graphs_asleep:napping", "C", BUDGET_S, given=GIVEN)
    run = measured.run
    # The caller is back while the node sleeps on, whose end is not before its time.
    assert run.returned_at_s < NAP_S <= run.quiescent_at_s
    ((ended_at_s, _, _),) = events(measured, "thread_ended")
    assert run.quiescent_at_s == ended_at_s
