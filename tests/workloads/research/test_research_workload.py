"""The workload under every alternative, and its table of sources: the real stack."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from docmind_lab.alternatives import ALTERNATIVES, AsyncCancellation
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder, measure
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.faults import Fault
from docmind_lab.services.server import LogClient, ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.research.exits import COMPLETE
from docmind_lab.systems.research.research_workload import KIND
from docmind_lab.tables.frames import to_frame

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus="handbook", kind="research")
    yield made
    made.close()


def options(*faults: str, profile: str = "typical") -> ServiceOptions:
    return ServiceOptions(LatencyProfile.named(profile), tuple(Fault.parse(fault) for fault in faults))


def orders(services: ServiceOptions, alternatives, timeout_s: float = TIMEOUT_S) -> list[RunOrder]:
    comparison = Comparison(
        decision_timeout_s=timeout_s,
        runs=1,
        alternatives=tuple(alternatives),
        profile=services.profile,
        faults=services.faults,
        documents=Documents("handbook"),
        workload="research",
    )
    return comparison.orders()


@pytest.fixture(scope="module")
def measured(system) -> dict[str, MeasuredRun]:
    made = orders(options(), [kind() for kind in ALTERNATIVES.values()])
    return {letter_of(order.alternative.name): system.measure(order, options()) for order in made}


def events_of(run: MeasuredRun, name: str) -> list[dict[str, object]]:
    return [json.loads(event.detail) for event in run.events if event.event == name]


def names(details: list[dict[str, object]]) -> Counter[tuple[object, object]]:
    return Counter((detail["hypothesis"], detail["source"]) for detail in details)


# ---- under every alternative


def test_each_alternative_keeps_its_promise_over_a_research(measured):
    runs = {letter: item.run for letter, item in measured.items()}
    control = runs.pop("control")
    assert control.outcome == "answered"
    assert control.returned_at_s > TIMEOUT_S
    for letter in "ABCEF":
        assert runs[letter].returned_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter
    for letter in "ACEF":
        assert runs[letter].quiescent_at_s == pytest.approx(TIMEOUT_S, abs=1e-9), letter
        assert runs[letter].calls_after_deadline == 0, letter
    assert TIMEOUT_S < runs["D"].returned_at_s < control.returned_at_s, "the flag is seen between steps of a source"
    assert runs["B"].quiescent_at_s == control.quiescent_at_s
    assert (runs["A"].propagation_coverage, runs["E"].propagation_coverage) == (1.0, 1.0)


def test_whoever_is_cut_has_what_was_kept_until_then_except_under_b(measured):
    for letter in "ACDEF":
        run = measured[letter].run
        recorded = sum(detail["new"] for detail in events_of(measured[letter], "query_recorded"))
        assert run.outcome == "partial", letter
        assert 0 < run.documents_count <= recorded, letter
        assert run.source_recall > 0, letter
    assert (measured["B"].run.outcome, measured["B"].run.documents_count) == ("timed_out", 0)


def test_every_source_that_was_started_has_exactly_one_completion_under_every_alternative(measured):
    for letter, item in measured.items():
        started, completed = names(events_of(item, "source_started")), names(events_of(item, COMPLETE))
        assert started == completed, letter
        assert set(started.values()) == {1}, letter


def test_the_reasons_tell_a_budget_from_a_cancellation(measured):
    last = {
        letter: {detail["exit_reason"] for detail in events_of(item, COMPLETE)} for letter, item in measured.items()
    }
    for letter in "AE":
        assert "research_budget_exhausted" in last[letter], letter
        assert "cancelled" not in last[letter], letter
    for letter in "CDF":
        assert "cancelled" in last[letter], letter
        assert "research_budget_exhausted" not in last[letter], letter


def test_nothing_of_a_run_is_left_in_the_folder_of_the_workload(system, measured):
    assert len(measured) == len(ALTERNATIVES)
    assert list(system.workload.folder.iterdir()) == []


def test_a_judge_that_hangs_now_and_then_does_not_keep_the_own_limits_from_ending_the_research(system):
    services = options("hang:judge:0.3")
    (order,) = orders(services, [ALTERNATIVES["unguarded"]()], timeout_s=900.0)
    item = system.measure(order, services)
    assert item.run.outcome == "answered"
    # A hung call ends by its own timeout of 180 s, and is tried again.
    assert item.run.returned_at_s > 180
    assert len(events_of(item, "retry")) >= 1


# ---- the table of sources


def test_the_table_of_sources_has_a_row_for_each_source_that_was_started(measured):
    items = list(measured.values())
    events = to_frame("events", [event for item in items for event in item.events])
    runs = to_frame("runs", [item.run for item in items])
    calls = to_frame("calls", [call for item in items for call in item.calls])
    (table,) = KIND.tables
    frame = table.derive(events, runs, calls)
    assert list(frame.columns) == [column.name for column in table.columns]
    assert len(frame) == sum(len(events_of(item, "source_started")) for item in items)
    assert frame["ended_at_s"].notna().all()
    assert set(frame.loc[frame["alternative"] == "unguarded", "source"]) == {"manual", "archive", "forum"}
    # Of a run that was watched only until a source had begun, the row says so.
    cut = table.derive(events[events["event"] != COMPLETE], runs, calls)
    assert len(cut) == len(frame)
    assert cut[["exit_reason", "ended_at_s", "queries_executed"]].isna().all(axis=None)
    assert cut["after_deadline"].all()


# ---- in other node modes, and on the wall clock


@pytest.mark.full
@pytest.mark.parametrize("mode", ["sync", "blocking"])
def test_over_nodes_that_are_async_in_name_only_a_cancellation_cuts_less(system, measured, mode):
    made = orders(options(), [kind() for kind in ALTERNATIVES.values()])
    (order,) = [order for order in made if letter_of(order.alternative.name) == "C"]
    item = system.measure(order, options(), node_mode=mode)
    assert item.run.quiescent_at_s > measured["C"].run.quiescent_at_s
    assert (item.run.returned_at_s > TIMEOUT_S) == (mode == "blocking")
    assert names(events_of(item, "source_started")) == names(events_of(item, COMPLETE))


@pytest.mark.full
@pytest.mark.wall
def test_on_the_wall_clock_a_cancelled_research_has_its_completions_too():
    services = options(profile="typical/100")
    (order,) = orders(services, [AsyncCancellation()], timeout_s=0.5)
    with ServiceProcess(services) as process:
        log = LogClient(process.addresses.log_url)
        workload = KIND.build(Surroundings(process.addresses, Settings(), corpus="handbook"))
        try:
            item = measure(order, workload, log)
        finally:
            workload.close()
            log.close()
    # A loaded machine may need a while to unwind; what is cancelled is over long before the research would be.
    assert item.run.returned_at_s < 0.5 + 1.0
    assert names(events_of(item, "source_started")) == names(events_of(item, COMPLETE))
    assert item.run.outcome in ("partial", "answered")
