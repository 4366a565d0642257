"""What goes on after the deadline under each alternative: on the real stack, in virtual time, to the last digit."""

from __future__ import annotations

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import (
    Alternative,
    AsyncCancellation,
    Cooperative,
    HardTimeout,
    Hybrid,
    Native,
    StopFlag,
    Unguarded,
)
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile

# A run takes 8 to 14 s; the deadline falls in the middle of it.
TIMEOUT_S, RUNS = 5.0, 3
PROFILE = LatencyProfile.named("typical")
CUTTING: tuple[Alternative, ...] = (Cooperative(), AsyncCancellation(), Hybrid(), Native())
ROUNDING_S = 1e-6


@pytest.fixture
def system(virtual_runs: VirtualRuns) -> SimulatedSystem:
    return virtual_runs.system


def measured(
    system: SimulatedSystem,
    alternative: Alternative,
    *faults: str,
    timeout_s: float = TIMEOUT_S,
    profile: LatencyProfile = PROFILE,
    behaviour: ServerBehaviour = STOPS,
) -> list[MeasuredRun]:
    comparison = Comparison(
        decision_timeout_s=timeout_s,
        runs=RUNS,
        alternatives=(alternative,),
        profile=profile,
        documents=Documents("handbook"),
    )
    options = ServiceOptions(profile, tuple(map(Fault.parse, faults)), behaviour=behaviour)
    # The order of a comparison is drawn from what is compared; by seed, two lists stand side by side.
    orders = sorted(comparison.orders(), key=lambda order: order.facts.seed)
    return [system.measure(order, options) for order in orders]


def under_fault(system: SimulatedSystem, alternative: Alternative, fault: str) -> list[MeasuredRun]:
    """A 2 s budget, and latencies under which synthesis, which the fault strikes, is reached well before it ends."""
    return measured(system, alternative, fault, timeout_s=2.0, profile=LatencyProfile.named("typical/40"))


def test_b_goes_on_after_its_caller_has_left(system: SimulatedSystem) -> None:
    for run in measured(system, HardTimeout()):
        assert run.run.caller_overrun_s < ROUNDING_S
        assert run.run.calls_after_deadline >= 1
        assert run.run.late_checkpoints >= 1
        assert run.run.tokens_after_deadline > 0
        assert run.run.work_overrun_s > 1.0


def test_b_does_exactly_the_work_that_nobody_enforcing_anything_does(system: SimulatedSystem) -> None:
    for left, free in zip(measured(system, HardTimeout()), measured(system, Unguarded()), strict=True):
        assert left.run.quiescent_at_s == free.run.quiescent_at_s
        assert left.run.llm_calls == free.run.llm_calls


@pytest.mark.parametrize("alternative", CUTTING, ids=lambda alternative: letter_of(alternative.name))
def test_a_c_e_and_f_are_back_at_the_deadline_and_nothing_goes_on(
    alternative: Alternative, system: SimulatedSystem
) -> None:
    for run in measured(system, alternative):
        assert run.run.caller_overrun_s < ROUNDING_S
        assert run.run.work_overrun_s < ROUNDING_S
        assert run.run.calls_after_deadline == 0
        assert run.run.busy_after_deadline_s < ROUNDING_S
        assert run.run.late_checkpoints == 0


def test_d_ends_with_its_step_and_starts_no_further_one(system: SimulatedSystem) -> None:
    runs = measured(system, StopFlag())
    for run in runs:
        assert run.run.outcome in ("partial", "timed_out")
        assert run.run.caller_overrun_s == run.run.work_overrun_s
        assert run.run.late_checkpoints == 0
    assert max(run.run.caller_overrun_s for run in runs) > 0.1


def test_b_drained_ends_with_its_step_too(system: SimulatedSystem) -> None:
    for drained, left in zip(
        measured(system, HardTimeout(drain_on_timeout=True)), measured(system, HardTimeout()), strict=True
    ):
        assert drained.run.caller_overrun_s < ROUNDING_S
        assert drained.run.quiescent_at_s < left.run.quiescent_at_s


def test_b_in_a_with_block_waits_for_the_work(system: SimulatedSystem) -> None:
    for run in measured(system, HardTimeout(naive=True)):
        assert run.run.outcome == "timed_out"
        assert run.run.caller_overrun_s == pytest.approx(run.run.work_overrun_s)
        assert run.run.caller_overrun_s > 1.0


def test_f_per_step_is_no_limit_of_the_run(system: SimulatedSystem) -> None:
    assert [run.run.outcome for run in measured(system, Native(per_step=True))] == ["answered"] * RUNS


@pytest.mark.parametrize("alternative", CUTTING, ids=lambda alternative: letter_of(alternative.name))
def test_a_server_that_does_not_stop_goes_on_with_the_call_that_was_cut_and_gets_no_other(
    alternative: Alternative, system: SimulatedSystem
) -> None:
    """Whether the server stops when its client goes away decides much of what cancellation is worth."""
    runs = measured(system, alternative, behaviour=GOES_ON)
    assert all(run.run.calls_after_deadline == 0 for run in runs)
    assert max(run.run.busy_after_deadline_s for run in runs) > 0.1


@pytest.mark.parametrize("fault", ["hang", "trickle"])
@pytest.mark.parametrize(
    "alternative", [HardTimeout(), *CUTTING], ids=lambda alternative: getattr(alternative, "letter", "")
)
def test_all_but_the_control_and_d_hold_a_hang_and_a_trickle(
    alternative: Alternative, fault: str, system: SimulatedSystem
) -> None:
    for run in under_fault(system, alternative, fault):
        assert run.run.caller_overrun_s < ROUNDING_S
        assert run.run.outcome in ("partial", "timed_out")


@pytest.mark.parametrize("alternative", [Cooperative(), Hybrid()], ids=lambda alternative: letter_of(alternative.name))
def test_retry_after_30_under_a_2_s_budget_costs_a_and_e_nothing_beyond_the_deadline(
    alternative: Alternative, system: SimulatedSystem
) -> None:
    for run in under_fault(system, alternative, "rate_limit=30:synthesis"):
        assert run.run.returned_at_s < 2.0
        assert run.run.calls_after_deadline == 0
        assert (run.run.outcome, run.run.stop_reason) == ("failed", "error")
        assert run.run.documents_count > 0
