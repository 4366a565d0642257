"""What goes on after the deadline under each alternative: on the real stack, in virtual time, to the last digit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Unguarded
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.server_behaviour import GOES_ON, STOPS, ServerBehaviour
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.records import RunRecord

# A run takes 8 to 14 s; the deadline falls in the middle of it.
TIMEOUT_S, RUNS = 5.0, 3
CUTTING = ("A", "C", "E", "F")
ROUNDING_S = 1e-6
Measure = Callable[..., list[RunRecord]]


@pytest.fixture
def measured(virtual_runs: VirtualRuns) -> Measure:
    """Measures three runs of one alternative, in the order of their seeds."""

    def measure(name: str, *faults: str, behaviour: ServerBehaviour = STOPS) -> list[RunRecord]:
        # Latencies under which synthesis, which a fault strikes, is reached well before the end of 2 s.
        profile = LatencyProfile.named("typical/40" if faults else "typical")
        comparison = Comparison(
            decision_timeout_s=2.0 if faults else TIMEOUT_S,
            runs=RUNS,
            alternatives=parse_alternatives(name),
            profile=profile,
            documents=Documents("handbook"),
        )
        options = ServiceOptions(profile, tuple(map(Fault.parse, faults)), behaviour=behaviour)
        # The order of a comparison is drawn from what is compared; by seed, two lists stand side by side.
        orders = sorted(comparison.orders(), key=lambda order: order.facts.seed)
        return [virtual_runs.system.measure(order, options).run for order in orders]

    return measure


def test_b_goes_on_after_its_caller_has_left_with_exactly_the_work_that_the_control_does(measured: Measure) -> None:
    for left, free in zip(measured("B"), measured("unguarded"), strict=True):
        assert left.caller_overrun_s < ROUNDING_S
        assert left.calls_after_deadline >= 1
        assert left.late_checkpoints >= 1
        assert left.tokens_after_deadline > 0
        assert left.work_overrun_s > 1.0
        assert (left.quiescent_at_s, left.llm_calls) == (free.quiescent_at_s, free.llm_calls)


@pytest.mark.parametrize("name", CUTTING)
def test_a_c_e_and_f_are_back_at_the_deadline_and_nothing_goes_on(name: str, measured: Measure) -> None:
    for run in measured(name):
        assert max(run.caller_overrun_s, run.work_overrun_s, run.busy_after_deadline_s) < ROUNDING_S
        assert (run.calls_after_deadline, run.late_checkpoints) == (0, 0)


def test_d_ends_with_its_step_and_starts_no_further_one(measured: Measure) -> None:
    runs = measured("D")
    for run in runs:
        assert run.outcome in ("partial", "timed_out")
        assert run.caller_overrun_s == run.work_overrun_s
        assert run.late_checkpoints == 0
    assert max(run.caller_overrun_s for run in runs) > 0.1


def test_b_drained_ends_with_its_step_too(measured: Measure) -> None:
    for drained, left in zip(measured("B:drain"), measured("B"), strict=True):
        assert drained.caller_overrun_s < ROUNDING_S
        assert drained.quiescent_at_s < left.quiescent_at_s


def test_b_in_a_with_block_waits_for_the_work(measured: Measure) -> None:
    for run in measured("B:naive"):
        assert run.outcome == "timed_out"
        assert run.caller_overrun_s == pytest.approx(run.work_overrun_s)
        assert run.caller_overrun_s > 1.0


def test_f_per_step_is_no_limit_of_the_run(measured: Measure) -> None:
    assert [run.outcome for run in measured("F:per_step")] == ["answered"] * RUNS


@pytest.mark.parametrize("name", CUTTING)
def test_a_server_that_does_not_stop_goes_on_with_the_call_that_was_cut_and_gets_no_other(
    name: str, measured: Measure
) -> None:
    """Whether the server stops when its client goes away decides much of what cancellation is worth."""
    runs = measured(name, behaviour=GOES_ON)
    assert all(run.calls_after_deadline == 0 for run in runs)
    assert max(run.busy_after_deadline_s for run in runs) > 0.1


@pytest.mark.parametrize("fault", ["hang", "trickle"])
@pytest.mark.parametrize("name", ["B", *CUTTING])
def test_all_but_the_control_and_d_hold_a_hang_and_a_trickle(name: str, fault: str, measured: Measure) -> None:
    for run in measured(name, fault):
        assert run.caller_overrun_s < ROUNDING_S
        assert run.outcome in ("partial", "timed_out")


@pytest.mark.parametrize("name", ["A", "E"])
def test_retry_after_30_under_a_2_s_budget_costs_a_and_e_nothing_beyond_the_deadline(
    name: str, measured: Measure
) -> None:
    for run in measured(name, "rate_limit=30:synthesis"):
        assert run.returned_at_s < 2.0
        assert run.calls_after_deadline == 0
        assert (run.outcome, run.stop_reason) == ("failed", "error")
        assert run.documents_count > 0


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_with_time_enough_every_alternative_gives_the_same_answer(
    kind: type[Alternative], virtual_runs: VirtualRuns
) -> None:
    free, measured = (virtual_runs.measure(each, timeout_s=100.0) for each in (Unguarded(), kind()))
    assert (measured.outcome.outcome, measured.outcome.answer) == ("answered", free.outcome.answer)
    assert (measured.run.source_recall, measured.run.answered_in_time) == (free.run.source_recall, True)
