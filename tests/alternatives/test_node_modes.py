"""What the async alternatives do over nodes that are sync, or that block the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest
from langchain_core.tools import StructuredTool
from virtual_runs import ALL_ENDS_S, CALL_ENDS_S, TIMEOUT_S, VirtualRuns

from docmind_lab.alternatives import ALTERNATIVES, AsyncCancellation
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.batch.cells import Cell, run_cell
from docmind_lab.experiments.comparison.comparison import node_mode_of
from docmind_lab.systems.base.node_modes import NODE_MODES, NodeMode, tool_in_mode


def at(instant_s: float) -> object:
    return pytest.approx(instant_s, abs=1e-3)


# ---- which nodes ran


def test_only_async_alternatives_have_a_choice_of_nodes() -> None:
    for kind in ALTERNATIVES.values():
        ran = [node_mode_of(kind(), mode) for mode in NODE_MODES]
        assert ran == (["async", "sync", "blocking"] if letter_of(kind.name) in "CEF" else ["sync"] * 3), letter_of(
            kind.name
        )


def test_a_colour_that_does_not_exist_is_refused_by_name(virtual_runs: VirtualRuns) -> None:
    with pytest.raises(ConfigurationError, match="node_mode must be one of own, sync, blocking, not 'green'"):
        virtual_runs.system.workload.in_node_mode("green")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", NODE_MODES)
def test_the_async_side_of_a_tool_runs_where_its_colour_says(mode: NodeMode) -> None:
    def where() -> str:
        return threading.current_thread().name

    async def where_async() -> str:
        return "own"

    tool = tool_in_mode(StructuredTool.from_function(where, where_async, name="where", description="Where?"), mode)
    here = threading.current_thread().name
    found = asyncio.run(tool.ainvoke({}))
    assert found == "own" if mode == "own" else (found == here) == (mode == "blocking")
    assert tool.invoke({}) == here


# ---- what happens


@pytest.mark.parametrize(
    ("name", "mode", "returned_at_s", "quiescent_at_s"),
    [
        # Over sync nodes the caller is back and the call goes on: nobody can cancel a thread.
        ("C", "sync", TIMEOUT_S, CALL_ENDS_S),
        ("F", "sync", TIMEOUT_S, CALL_ENDS_S),
        ("E:unpropagated", "sync", TIMEOUT_S + 0.05, CALL_ENDS_S),
        # Over nodes that block the loop the caller is late by the rest of the call; E's leaves after 100 ms.
        ("C", "blocking", CALL_ENDS_S, CALL_ENDS_S),
        ("F", "blocking", CALL_ENDS_S, CALL_ENDS_S),
        ("E:unpropagated", "blocking", TIMEOUT_S + 0.1, CALL_ENDS_S),
        # Of three limits of a step, none is reached: the run is late and answers.
        ("F:per_step", "blocking", ALL_ENDS_S, ALL_ENDS_S),
        # Where each call has its cap, the mode of its node does not matter.
        ("E", "sync", TIMEOUT_S, TIMEOUT_S),
        ("E", "blocking", TIMEOUT_S, TIMEOUT_S),
        ("C:propagate", "sync", TIMEOUT_S, TIMEOUT_S),
        ("C:propagate", "blocking", TIMEOUT_S, TIMEOUT_S),
        ("F:propagate", "blocking", TIMEOUT_S, TIMEOUT_S),
    ],
)
def test_when_the_caller_is_back_and_when_the_work_is_over(
    virtual_runs: VirtualRuns, name: str, mode: NodeMode, returned_at_s: float, quiescent_at_s: float
) -> None:
    run = virtual_runs.measure(name, mode=mode).run
    assert run.returned_at_s == at(returned_at_s)
    assert run.quiescent_at_s == at(quiescent_at_s)
    assert (run.tokens_after_deadline > 0) == (quiescent_at_s > TIMEOUT_S)
    assert run.threads_left == 0


@pytest.mark.parametrize("name", ["C", "F", "E:unpropagated"])
def test_the_end_of_a_thread_is_told_of_when_it_comes_and_of_which_node(virtual_runs: VirtualRuns, name: str) -> None:
    measured = virtual_runs.measure(name, mode="sync")
    *_, last = [made for made in measured.events if made.event == "thread_ended"]
    assert (last.at_s, last.role) == (at(CALL_ENDS_S), "validation")
    assert last.detail["node"].startswith("validation_agent/")
    of_node = [made.at_s for made in measured.events if (made.event, made.role) == ("node_ended", "validation")]
    assert TIMEOUT_S <= max(of_node) < CALL_ENDS_S


@pytest.mark.parametrize(
    ("name", "mode", "outcome", "stop_reason"),
    [
        ("C", "sync", "partial", "cancelled"),
        ("F", "sync", "partial", "node_timeout"),
        ("E:unpropagated", "sync", "partial", "step_timeout"),
        ("C", "blocking", "unfinished", "horizon"),
        ("F", "blocking", "unfinished", "horizon"),
        ("E:unpropagated", "blocking", "partial", "left_behind"),
    ],
)
def test_a_hang_is_left_to_its_thread_or_takes_the_loop_with_it(
    virtual_runs: VirtualRuns, name: str, mode: NodeMode, outcome: str, stop_reason: str
) -> None:
    run = virtual_runs.measure(name, "hang", mode=mode).run
    assert (run.outcome, run.stop_reason, run.work_censored) == (outcome, stop_reason, True)
    # The worker thread over sync nodes, the caller's over blocking ones; the loop's own belongs to no run.
    assert run.threads_left == (0 if stop_reason == "left_behind" else 1)


def test_a_sync_alternative_gives_the_same_tables_over_nodes_of_every_mode(virtual_runs: VirtualRuns) -> None:
    runs = [virtual_runs.measure("A", mode=mode) for mode in NODE_MODES]
    tables = {repr((made.run, made.calls, made.events)) for made in runs}
    assert len(tables) == 1


@pytest.mark.parametrize("mode", ["sync", "blocking"])
def test_runs_over_other_nodes_give_the_same_tables_again_and_leave_no_thread(
    virtual_runs: VirtualRuns, mode: NodeMode
) -> None:
    before = set(threading.enumerate())
    first, again = (virtual_runs.measure("C", "hang:*:0.2", mode=mode) for _ in range(2))
    assert repr((first.run, first.calls, first.events)) == repr((again.run, again.calls, again.events))
    assert set(threading.enumerate()) <= before


def test_a_cells_runs_are_over_nodes_of_its_mode(virtual_runs: VirtualRuns) -> None:
    (order,), options = virtual_runs.orders([AsyncCancellation()])
    for mode, quiescent_at_s in (("own", TIMEOUT_S), ("sync", CALL_ENDS_S)):
        system = Simulated(Settings(), options, corpus="handbook", node_mode=mode)  # type: ignore[arg-type]
        (measured,) = run_cell(Cell("000", (order,), system)).measured
        assert measured.run.quiescent_at_s == at(quiescent_at_s)
