"""What variants leave behind, and where all alternatives are alike: on the real stack, in virtual time.

`test_virtual_measurement` has what each alternative leaves, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from virtual_runs import VirtualRuns

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Unguarded
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import ServiceOptions
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.records import RunRecord

# A run takes 8 to 14 s; the deadline falls in the middle of it.
TIMEOUT_S, RUNS = 5.0, 3
ROUNDING_S = 1e-6
Measure = Callable[..., list[RunRecord]]


@pytest.fixture
def measured(virtual_runs: VirtualRuns) -> Measure:
    """Measures three runs of one alternative, in the order of their seeds."""

    def measure(name: str, *faults: str) -> list[RunRecord]:
        # Latencies under which synthesis, which a fault strikes, is reached well before the end of 2 s.
        profile = LatencyProfile.named("typical/40" if faults else "typical")
        comparison = Comparison(
            decision_timeout_s=2.0 if faults else TIMEOUT_S,
            runs=RUNS,
            alternatives=parse_alternatives(name),
            profile=profile,
            documents=Documents("handbook"),
        )
        options = ServiceOptions(profile, tuple(map(Fault.parse, faults)))
        # The order of a comparison is drawn from what is compared; by seed, two lists stand side by side.
        orders = sorted(comparison.orders(), key=lambda order: order.facts.seed)
        return [virtual_runs.system.measure(order, options).run for order in orders]

    return measure


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
