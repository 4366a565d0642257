"""The workload under every alternative, and its table of sources: the real stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from virtual_runs import VirtualRuns, details, frames_of

from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.systems.research.exits import COMPLETE
from docmind_lab.systems.research.research_workload import KIND

TIMEOUT_S = 20.0


@pytest.fixture(scope="module")
def system() -> Iterator[VirtualRuns]:
    with VirtualRuns.of("research") as made:
        yield made


@pytest.fixture(scope="module")
def measured(system: VirtualRuns) -> dict[str, MeasuredRun]:
    return system.measure_each("control,A,B,C,D,E,F", timeout_s=TIMEOUT_S)


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
        recorded = sum(detail["new"] for detail in details(measured[letter], "query_recorded"))
        assert run.outcome == "partial", letter
        assert 0 < run.documents_count <= recorded, letter
        assert run.source_recall > 0, letter
    assert (measured["B"].run.outcome, measured["B"].run.documents_count) == ("timed_out", 0)


def test_every_source_that_was_started_has_exactly_one_completion_under_every_alternative(measured):
    for letter, item in measured.items():
        started, completed = names(details(item, "source_started")), names(details(item, COMPLETE))
        assert started == completed, letter
        assert set(started.values()) == {1}, letter


def test_the_reasons_tell_a_budget_from_a_cancellation(measured):
    last = {letter: {detail["exit_reason"] for detail in details(item, COMPLETE)} for letter, item in measured.items()}
    for letter in "AE":
        assert "research_budget_exhausted" in last[letter], letter
        assert "cancelled" not in last[letter], letter
    for letter in "CDF":
        assert "cancelled" in last[letter], letter
        assert "research_budget_exhausted" not in last[letter], letter


def test_a_judge_that_hangs_now_and_then_does_not_keep_the_own_limits_from_ending_the_research(system):
    item = system.measure("unguarded", "hang:judge:0.3", timeout_s=900.0)
    assert item.run.outcome == "answered"
    # A hung call ends by its own timeout of 180 s, and is tried again.
    assert item.run.returned_at_s > 180
    assert len(details(item, "retry")) >= 1


# ---- the table of sources


def test_the_table_of_sources_has_a_row_for_each_source_that_was_started(measured):
    items = list(measured.values())
    events, runs, calls = frames_of(items)
    (table,) = KIND.tables
    frame = table.derive(events, runs, calls)
    assert list(frame.columns) == [column.name for column in table.columns]
    assert len(frame) == sum(len(details(item, "source_started")) for item in items)
    assert frame["ended_at_s"].notna().all()
    assert set(frame.loc[frame["alternative"] == "unguarded", "source"]) == {"manual", "archive", "forum"}
    # Of a run that was watched only until a source had begun, the row says so.
    cut = table.derive(events[events["event"] != COMPLETE], runs, calls)
    assert len(cut) == len(frame)
    assert cut[["exit_reason", "ended_at_s", "queries_executed"]].isna().all(axis=None)
    assert cut["after_deadline"].all()
