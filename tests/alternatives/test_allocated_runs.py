"""Whole runs whose budget is divided over the roles, in virtual time."""

from __future__ import annotations

import json

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import Alternative, Cooperative, HardTimeout, Hybrid, Unguarded
from docmind_lab.alternatives.allocation import Equal, LearnedPercentile, Proportional, ReserveFirst
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.deadlines import Allocation, PropagationPolicy
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.frames import to_frame

# All of the first question takes 9.6 s; under equal shares of 8 s the router may work until 1.56 s, and needs longer.
TIMEOUT_S = 8.0


def dividing(allocation: Allocation) -> PropagationPolicy:
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
    # Two seconds for each of the supervisor's turns, also for the one after validation.
    generous = ReserveFirst({"supervisor": 12.0})
    divided, undivided = (
        virtual_runs.measure(alternative, "hang:validation", timeout_s=20.0).run
        for alternative in (Cooperative(dividing(generous)), Cooperative())
    )
    assert (undivided.outcome, undivided.returned_at_s) == ("partial", pytest.approx(20.0))
    assert divided.answered_in_time
    assert divided.answer_score > 0


def test_a_run_that_lost_its_synthesis_returns_early_with_documents_and_no_answer(virtual_runs: VirtualRuns) -> None:
    # Synthesis takes from 3.5 to 6.6 s, and may until 4.9.
    tight = Proportional({"supervisor": 3.0, "router": 3.0, "retrieval": 3.0, "synthesis": 0.01, "validation": 4.0})
    run = measured(virtual_runs, Cooperative(dividing(tight)))
    assert "synthesis" in spent(run)
    assert (run.run.outcome, run.outcome.answer) == ("partial", "")
    assert run.run.documents_count > 0
    assert run.run.returned_at_s < TIMEOUT_S


@pytest.mark.full
def test_the_allocators_are_compared_on_seeds_that_they_have_not_seen(virtual_runs: VirtualRuns) -> None:
    """Directions only: how much an allocator helps is a finding of a study, not a rule."""
    profile, runs = LatencyProfile.named("heavy_tail/3"), 24
    options = ServiceOptions(profile)

    def study(seed: int, *alternatives: Alternative) -> list[MeasuredRun]:
        comparison = Comparison(
            decision_timeout_s=20.0,
            runs=runs,
            seed=seed,
            alternatives=alternatives,
            profile=profile,
            documents=Documents("handbook"),
        )
        return [virtual_runs.system.measure(order, options) for order in comparison.orders()]

    taught = study(1007, Unguarded())
    calls = to_frame("calls", [call for run in taught for call in run.calls]).query("seen_from == 'client'")
    taken_s = (
        (calls["ended_at_s"] - calls["started_at_s"]).groupby([calls["run_id"], calls["role"].astype("str")]).sum()
    )
    by_role = taken_s.groupby("role")
    assert set(by_role.groups) == {"supervisor", "router", "planner", "retrieval", "synthesis", "validation"}
    allocations: list[Allocation] = [
        Equal(),
        Proportional(by_role.mean().to_dict()),
        LearnedPercentile(90, by_role.quantile(0.9).to_dict()),
        ReserveFirst(),
    ]
    arms = {allocation.name: Cooperative(dividing(allocation)) for allocation in allocations}
    for name, alternative in {"undivided": Cooperative(), **arms}.items():
        found = [measured_run.run for measured_run in study(7, alternative)]
        assert max(run.caller_overrun_s for run in found) == 0.0, name
        assert {run.propagation_coverage for run in found} == {1.0}, name
        # Nobody answers less because somebody else was cut: some runs answer in time under each of them.
        assert sum(run.answered_in_time for run in found) > 0, name
