"""Whole runs whose budget is divided over the roles, in virtual time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import Alternative, Cooperative, HardTimeout, Hybrid
from docmind_lab.alternatives.propagation import Equal
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.deadlines import Allocation, PropagationPolicy
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile

# All of the first question takes 9.6 s; under equal shares of 8 s the router may work until 1.56 s, and needs longer.
TIMEOUT_S = 8.0


@dataclass(frozen=True)
class Until:
    """Lets these roles work until these seconds, and the others until the deadline."""

    seconds: tuple[tuple[str, float], ...]

    name: ClassVar[str] = "until"

    def until_s(self, role: str, budget_s: float) -> float:
        return dict(self.seconds).get(role, budget_s)


def dividing(allocation: Allocation | None) -> PropagationPolicy:
    return PropagationPolicy(allocation=allocation)


def measured(virtual_runs: VirtualRuns, alternative: Alternative, *faults: str) -> MeasuredRun:
    return virtual_runs.measure(alternative, *faults, timeout_s=TIMEOUT_S)


def spent(run: MeasuredRun) -> dict[str, tuple[float, float]]:
    """Role → (instant, what it had been allotted), of the first time it had no more."""
    found: dict[str, tuple[float, float]] = {}
    for event in run.events:
        if event.event == "allotment_spent":
            found.setdefault(event.role, (event.at_s, json.loads(event.detail)["allotted_s"]))
    return found


@pytest.mark.parametrize("kind", [Cooperative, Hybrid, HardTimeout], ids=lambda kind: letter_of(kind.name))
def test_a_role_is_cut_at_the_end_of_its_allotment_and_the_run_goes_on(
    virtual_runs: VirtualRuns, kind: type[Cooperative]
) -> None:
    run = measured(virtual_runs, kind(propagate=True, policy=dividing(Equal())))
    cut = spent(run)
    for role, (at_s, allotted_s) in cut.items():
        until_s = Equal().until_s(role, TIMEOUT_S)
        assert at_s == pytest.approx(until_s, abs=0.006), role  # the floor, below which a call is refused
        assert 0 < allotted_s < until_s, role
        later = [event for event in run.events if event.event == "attempt_started" and event.at_s > at_s]
        assert any(event.role == "supervisor" for event in later) or role == "synthesis", role
    assert cut
    assert run.run.propagation_coverage == 1.0
    assert run.run.caller_overrun_s == run.run.work_overrun_s == 0.0


def test_sync_and_async_runs_cut_the_same_roles_at_the_same_instants(virtual_runs: VirtualRuns) -> None:
    found = [
        {role: (pytest.approx(at_s), pytest.approx(allotted_s)) for role, (at_s, allotted_s) in spent(run).items()}
        for run in (
            measured(virtual_runs, Cooperative(dividing(Equal()))),
            measured(virtual_runs, Hybrid(dividing(Equal()))),
        )
    ]
    assert found[0] == found[1]


def test_a_hang_of_one_role_costs_no_more_than_its_allotment(virtual_runs: VirtualRuns) -> None:
    """Undivided, validation that hangs takes the rest of the budget and the answer with it."""
    # Two seconds for the supervisor's turn after validation.
    generous = Until((("validation", 18.0),))
    divided, undivided = (
        virtual_runs.measure(alternative, "hang:validation", timeout_s=20.0).run
        for alternative in (Cooperative(dividing(generous)), Cooperative())
    )
    assert (undivided.outcome, undivided.returned_at_s) == ("partial", pytest.approx(20.0))
    assert divided.answered_in_time
    assert divided.answer_score > 0


def test_a_run_that_lost_its_synthesis_returns_early_with_documents_and_no_answer(virtual_runs: VirtualRuns) -> None:
    # Synthesis takes from 3.5 to 6.6 s.
    tight = Until((("synthesis", 4.9),))
    run = measured(virtual_runs, Cooperative(dividing(tight)))
    assert "synthesis" in spent(run)
    assert (run.run.outcome, run.outcome.answer) == ("partial", "")
    assert run.run.documents_count > 0
    assert run.run.returned_at_s < TIMEOUT_S


@pytest.mark.full
@pytest.mark.parametrize("allocation", [None, Equal()], ids=["whole", "equal"])
def test_no_run_is_late_and_some_answer_in_time_however_the_budget_is_divided(
    virtual_runs: VirtualRuns, allocation: Allocation | None
) -> None:
    """Directions only: how much an allocator helps is a finding of a study, not a rule."""
    profile = LatencyProfile.named("heavy_tail/3")
    comparison = Comparison(
        decision_timeout_s=20.0,
        runs=24,
        seed=7,
        alternatives=(Cooperative(dividing(allocation)),),
        profile=profile,
        documents=Documents("handbook"),
    )
    runs = [virtual_runs.system.measure(order, ServiceOptions(profile)).run for order in comparison.orders()]
    assert max(run.caller_overrun_s for run in runs) == 0.0
    assert {run.propagation_coverage for run in runs} == {1.0}
    assert sum(run.answered_in_time for run in runs) > 0
