"""The parent of four peers under every alternative, measured in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from virtual_runs import VirtualRuns, events_of, frames_of

from docmind_lab.alternatives import ALTERNATIVES, Alternative, AsyncCancellation, Cooperative, HardTimeout, Unguarded
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.services.hosted_behaviour import PeerHabits
from docmind_lab.systems.peers.peer_events import PEER_TASKS
from docmind_lab.tables.records import DTYPES

# With this profile and seed the model has delegated at 2.9 s, and the peers are at work until 5.4 to 5.7 s.
AT_WORK_S = 4.5


@pytest.fixture(scope="module")
def system() -> Iterator[VirtualRuns]:
    with VirtualRuns.of("peers") as made:
        yield made


def measured(
    system: VirtualRuns, alternative: Alternative, timeout_s: float, mode: Any = "own", **habits: float
) -> MeasuredRun:
    """One run, with peers that have these habits alone."""
    run: MeasuredRun = system.once(
        system.measure, alternative, timeout_s=timeout_s, mode=mode, peers=PeerHabits(**habits)
    )
    return run


def told(run: MeasuredRun, event: str) -> list[dict[str, Any]]:
    return [{"at_s": at_s, **detail} for at_s, detail in events_of(run, event)]


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=list(ALTERNATIVES))
def test_every_alternative_runs_it_and_those_with_time_enough_answer(kind: type[Any], system: VirtualRuns) -> None:
    run = measured(system, kind(), 60.0).run
    assert (run.outcome, run.stop_reason, run.llm_calls) == ("answered", "", 2)
    assert run.documents_count > 0
    assert run.work_overrun_s == 0.0
    assert not run.work_censored


@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=list(ALTERNATIVES))
def test_every_alternative_is_measured_to_its_end_when_the_deadline_falls_among_the_peers(
    kind: type[Any], system: VirtualRuns
) -> None:
    run = measured(system, kind(), AT_WORK_S)
    by_deadline = run.run.returned_at_s <= AT_WORK_S + 0.2
    assert by_deadline == (
        letter_of(kind.name) not in ("control", "D")
    )  # the control and the flag between steps are late
    assert not run.run.work_censored
    assert run.run.threads_left == 0
    correlator = system.system.workload.caller.correlator  # type: ignore[attr-defined]
    assert (correlator.store.pending(), correlator.known()) == ((), ())


def test_cancelling_the_graph_reaches_the_children(system: VirtualRuns) -> None:
    run = measured(system, AsyncCancellation(), AT_WORK_S)
    assert [each["outcome"] for each in told(run, "peer_decided")] == ["cancelled"] * 4
    assert told(run, "peer_retriggered") == []
    tasks = [call for call in run.calls if call.kind == "peer" and call.seen_from == "server" and call.step[-1] == "1"]
    assert [task.ended_at_s for task in tasks] == pytest.approx([AT_WORK_S] * 4)
    assert run.run.busy_after_deadline_s == pytest.approx(0.0)


def test_a_hard_timeout_leaves_the_children_at_work(system: VirtualRuns) -> None:
    run = measured(system, HardTimeout(), AT_WORK_S)
    assert run.run.outcome == "timed_out"
    assert [each["outcome"] for each in told(run, "peer_decided")] == ["completed"] * 4
    assert run.run.busy_after_deadline_s > 4 * 1.0


def test_a_propagated_deadline_ends_calls_early_enough_to_conclude(system: VirtualRuns) -> None:
    run = measured(system, Cooperative(), 6.0)
    decided = told(run, "peer_decided")
    assert {each["limit"] for each in decided} == {"deadline"}
    # Three quarters of what was left when the peers were asked.
    (sent_at_s,) = {each["at_s"] for each in told(run, "peer_sent")}
    assert [each["at_s"] for each in decided] == pytest.approx([sent_at_s + 0.75 * (6.0 - sent_at_s)] * 4)
    assert len(told(run, "peer_retriggered")) == 1
    assert run.run.llm_calls == 2


def test_the_control_knows_of_no_deadline(system: VirtualRuns) -> None:
    run = measured(system, Unguarded(), AT_WORK_S)
    assert {each["limit"] for each in told(run, "peer_decided")} == {""}
    assert run.run.outcome == "answered"


@pytest.mark.parametrize(("mode", "is_cut"), [("own", True), ("sync", False), ("blocking", False)])
def test_the_children_are_cancelled_only_through_nodes_that_can_be(
    mode: str, is_cut: bool, system: VirtualRuns
) -> None:
    run = measured(system, AsyncCancellation(), AT_WORK_S, mode=mode)
    outcomes = {each["outcome"] for each in told(run, "peer_decided")}
    assert outcomes == ({"cancelled"} if is_cut else {"completed"})
    assert (run.run.returned_at_s <= AT_WORK_S + 0.2) == (mode != "blocking")


def test_what_is_kept_is_what_peers_found_in_time(system: VirtualRuns) -> None:
    whole = measured(system, Unguarded(), 60.0)
    found = {document["id"] for document in whole.outcome.documents}
    ids = {name for each in told(whole, "retrieved") for name in each["ids"]}
    assert found == ids
    assert whole.run.recall_at_deadline == whole.run.source_recall > 0
    assert measured(system, Cooperative(), 2.0).run.documents_count == 0


def test_peers_that_misbehave_change_no_outcome_but_waste_time(system: VirtualRuns) -> None:
    odd = {"ignores_cancel": 1.0, "twice": 1.0}
    good, bad = (measured(system, AsyncCancellation(), AT_WORK_S, **habits) for habits in ({}, odd))
    assert (good.run.outcome, good.run.returned_at_s) == (bad.run.outcome, bad.run.returned_at_s)
    assert good.run.busy_after_deadline_s == pytest.approx(0.0)
    assert bad.run.busy_after_deadline_s > 4 * 1.0


def test_a_peer_that_is_lost_keeps_nobody_waiting_and_is_seen_at_the_horizon(system: VirtualRuns) -> None:
    run = measured(system, Unguarded(), AT_WORK_S, lost=1.0, ignores_cancel=1.0)
    assert {each["outcome"] for each in told(run, "peer_decided")} == {"timed_out"}
    assert run.run.work_censored
    assert run.run.quiescent_at_s == run.run.horizon_s


def test_the_table_has_one_row_for_each_call_and_says_what_was_wasted(system: VirtualRuns) -> None:
    runs = [measured(system, AsyncCancellation(), AT_WORK_S), measured(system, Unguarded(), AT_WORK_S)]
    table = PEER_TASKS.derive(*frames_of(runs))
    assert list(table.columns) == [column.name for column in PEER_TASKS.columns]
    assert table.groupby("run_id").size().tolist() == [4, 4]
    cut, whole = table[table["outcome"] == "cancelled"], table[table["outcome"] == "completed"]
    assert len(cut) == len(whole) == 4
    assert (cut["peer_wasted_s"] == cut["peer_worked_s"]).all()
    assert (cut["peer_worked_s"] > 0).all()
    assert (whole["peer_wasted_s"] == 0).all()
    assert set(cut["cancel_outcome"]) == {"accepted"}
    assert (cut["cancel_delivered_s"] < 0.05).all()
    for column in PEER_TASKS.columns:
        assert table[column.name].dtype.name == DTYPES[column.kind], column.name
        if column.levels:
            assert set(table[column.name].cat.categories) == set(column.levels), column.name
