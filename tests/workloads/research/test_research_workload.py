"""The workload under every alternative, its table of sources, and research as a plain function: real stack."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator

import pandas as pd
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
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.workload_kind import Surroundings
from docmind_lab.systems.research.exits import COMPLETE
from docmind_lab.systems.research.research_workload import KIND
from docmind_lab.systems.research.running import SimulatedResearch, research_async
from docmind_lab.systems.research.tasks import ResearchLimits, load_tasks
from docmind_lab.tables.frames import to_frame

TIMEOUT_S = 20.0
# Two hypotheses over a corpus of a few dozen passages, which costs little CPU to fill sources with.
TASK = load_tasks("handbook")[0]


@pytest.fixture(scope="module")
def system() -> Iterator[SimulatedSystem]:
    made = SimulatedSystem(Settings(), corpus="handbook", kind="research")
    yield made
    made.close()


@pytest.fixture(scope="module")
def laboratory() -> Iterator[SimulatedResearch]:
    with SimulatedResearch(ResearchLimits(max_queries_per_source=4), corpus=handbook()) as made:
        yield made


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


# ---- as a function


def test_a_study_of_two_hours_takes_seconds(laboratory):
    limits = ResearchLimits(max_queries_per_source=4, max_time_per_source_seconds=7200, max_time_minutes=120)
    slow = SimulatedResearch(limits, profile=LatencyProfile.named("typical").scaled(150), seed=3, corpus=handbook())
    with slow:
        report = slow.research(TASK)
    assert report.duration_s > 3600
    assert report.duration_s < 7200 + 20 * 150
    assert len(report.completions) == 6


def test_a_report_lists_why_each_source_ended_and_what_is_partial(laboratory):
    report = laboratory.research(TASK)
    reasons = {
        name: {c.source: c.exit_reason for c in report.completions if c.hypothesis == name} for name in ("h1", "h2")
    }
    assert [set(of_it) for of_it in reasons.values()] == [{"manual", "archive", "forum"}] * 2
    assert "llm_saturated" in reasons["h1"].values()
    assert report.is_partial == ("max_queries_reached" in {r for of_it in reasons.values() for r in of_it.values()})
    assert all(f"{c.hypothesis} {c.source}: {c.exit_reason}" in str(report) for c in report.completions)
    short = laboratory.research(TASK, limits=ResearchLimits(max_time_minutes=0.1))
    assert short.is_partial
    assert {completion.exit_reason for completion in short.completions} == {"research_budget_exhausted"}
    assert short.not_started == (("h2", "manual"), ("h2", "archive"), ("h2", "forum"))
    assert "h2 forum (not started)" in str(short)


def test_results_are_in_the_folder_of_whoever_asked(laboratory, tmp_path):
    report = laboratory.research(TASK, folder=tmp_path)
    kept = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [item["key"] for item in kept["items"]] == [item.key for item in report.items]
    lines = (tmp_path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(report.completions)


@pytest.mark.full
def test_an_async_research_finds_what_a_sync_one_does(laboratory):
    task = TASK
    awaited = laboratory.run(lambda: asyncio.run(research_async(task, laboratory.system)))
    assert awaited == laboratory.research(task)


def test_what_was_kept_is_not_thrown_away_with_the_findings():
    with SimulatedResearch(
        ResearchLimits(max_queries_per_source=1), faults=["http_500:synthesis"], corpus=handbook()
    ) as broken:
        report = broken.research(TASK)
    assert (report.error, report.is_partial) == ("OpenAIAPIError", True)
    assert report.items
    assert report.findings.startswith(f"{len(report.items)} results were kept")


@pytest.mark.full
@pytest.mark.parametrize("mode", ["sync", "blocking"])
def test_over_nodes_that_are_async_in_name_only_a_cancellation_cuts_less(system, measured, mode):
    made = orders(options(), [kind() for kind in ALTERNATIVES.values()])
    (order,) = [order for order in made if letter_of(order.alternative.name) == "C"]
    item = system.measure(order, options(), node_mode=mode)
    assert item.run.quiescent_at_s > measured["C"].run.quiescent_at_s
    assert (item.run.returned_at_s > TIMEOUT_S) == (mode == "blocking")
    assert names(events_of(item, "source_started")) == names(events_of(item, COMPLETE))


def test_past_the_stop_the_same_sources_are_really_asked_further(laboratory):
    report = laboratory.research(TASK, limits=ResearchLimits(max_queries_per_source=1))
    missed = laboratory.past_the_stop(report, further_queries=2)
    assert len(missed) == len(report.completions)
    assert missed["further_queries"].between(1, 2).all()
    assert (missed["saved_s"] > 0).all()
    # After a single query there was more to be had.
    assert missed["missed_results"].sum() > 0
    longer = laboratory.past_the_stop(report, further_queries=2)
    pd.testing.assert_frame_equal(missed, longer)


# ---- on the wall clock


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
