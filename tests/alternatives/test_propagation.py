"""Enforcement and propagation are two factors: each alternative with and without the deadline in the state."""

from __future__ import annotations

import math

import pytest
from virtual_runs import ALL_ENDS_S, CALL_ENDS_S, TIMEOUT_S, VirtualRuns

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Cooperative, Hybrid, Unguarded
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.systems.base.retries import retries_of_alternative

PROPAGATED = ("A", "B:propagate", "C:propagate", "D:propagate", "E", "F:propagate")


def cut_at(instant_s: float) -> object:
    return pytest.approx(instant_s, abs=1e-3)


# ---- the option


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_who_retries_follows_from_whether_the_deadline_travels(kind: type[Alternative]) -> None:
    if kind is Unguarded:
        assert not hasattr(Unguarded(), "propagate")
        assert (Unguarded().propagates, Unguarded().client_retries) == (False, True)
        return
    assert issubclass(kind, Propagation)
    assert kind().propagates == (kind in (Cooperative, Hybrid))
    for propagate in (False, True):
        made = kind(propagate=propagate)  # type: ignore[call-arg]
        assert (made.propagates, made.client_retries) == (propagate, not propagate)
        assert retries_of_alternative(made) == ("budgeted:1" if propagate else "sdk:2")


def test_retries_are_given_to_those_that_retry_by_themselves() -> None:
    propagated, alone = parse_alternatives("B:propagate,B", retries=3)
    assert (retries_of_alternative(propagated, 3), retries_of_alternative(alone, 3)) == ("budgeted:3", "sdk:3")
    assert options_json(alone) == "{}"


# ---- what happens


@pytest.mark.parametrize("name", PROPAGATED)
def test_with_the_deadline_in_the_state_every_call_is_capped_and_nothing_is_left_at_the_server(
    virtual_runs: VirtualRuns, name: str
) -> None:
    for faults in ((), ("hang",)):
        run = virtual_runs.measure(name, *faults).run
        assert (run.deadline_propagation, run.propagation_coverage) == (True, 1.0)
        assert run.returned_at_s == run.quiescent_at_s == cut_at(TIMEOUT_S)
        assert (run.tokens_after_deadline, run.busy_after_deadline_s, run.threads_left) == (0, 0, 0)
        assert run.outcome == ("timed_out" if name == "B:propagate" else "partial")


@pytest.mark.parametrize(
    ("name", "returned_at_s", "quiescent_at_s"),
    [
        ("A:unpropagated", CALL_ENDS_S, CALL_ENDS_S),
        ("B", TIMEOUT_S, ALL_ENDS_S),
        ("C", TIMEOUT_S, TIMEOUT_S),
        ("D", CALL_ENDS_S, CALL_ENDS_S),
        # A step's slack, after which it is cancelled.
        ("E:unpropagated", TIMEOUT_S + 0.05, TIMEOUT_S + 0.05),
        ("F", TIMEOUT_S, TIMEOUT_S),
    ],
)
def test_alone_each_way_to_enforce_a_deadline_does_what_it_does(
    virtual_runs: VirtualRuns, name: str, returned_at_s: float, quiescent_at_s: float
) -> None:
    run = virtual_runs.measure(name).run
    assert (run.deadline_propagation, run.retries) == (False, "sdk:2")
    assert math.isnan(run.propagation_coverage)
    assert run.returned_at_s == cut_at(returned_at_s)
    assert run.quiescent_at_s == cut_at(quiescent_at_s)


def test_a_without_its_deadline_looks_between_steps_only_and_is_lost_in_a_hang(virtual_runs: VirtualRuns) -> None:
    run = virtual_runs.measure("A:unpropagated", "hang").run
    assert (run.outcome, run.work_censored, run.threads_left) == ("unfinished", True, 1)


def test_clients_retry_only_where_no_deadline_travels(virtual_runs: VirtualRuns) -> None:
    alone, propagated = virtual_runs.measure("B", "http_500@1:*"), virtual_runs.measure("B:propagate", "http_500@1:*")
    assert sum(event.event == "retry" for event in alone.events) == 0
    assert sum(event.event == "retry" for event in propagated.events) > 0
    for measured in (alone, propagated):
        assert any(row.attempt == 2 for row in measured.calls)
