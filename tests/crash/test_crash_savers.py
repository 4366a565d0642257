"""The checkpointers of a crash test: stores outside the process, what a kill leaves in them, and copies of threads."""

from __future__ import annotations

import operator
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph
from own_runs import graph_of
from script_modules import load_script

import docmind_lab as dl
from docmind_lab.core.errors import NotSimulated
from docmind_lab.experiments.assertions import assert_survives_cuts, cut_at
from docmind_lab.experiments.crash_test import crash_test
from docmind_lab.experiments.crash_test.checkpointers import read_thread
from docmind_lab.virtual_time import VirtualClock

GIVEN: list[Any] = [{"said": []}]
ROOT = Path(__file__).parents[2]
SAVERS: Any = load_script(ROOT / "examples/crash/savers.py")


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def two_steps(*, is_async: bool = False) -> Any:
    def say(word: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            return {"said": [word]}

        async def anode(state: State) -> dict[str, Any]:
            return {"said": [word]}

        return anode if is_async else node

    return graph_of(schema=State, first=say("first"), second=say("second"))


class Uncommitted(sqlite3.Connection):
    """A connection that never commits."""

    def commit(self) -> None:
        """Do nothing."""


def never_committed(folder: str) -> SqliteSaver:
    path = os.path.join(folder, "threads.sqlite")
    return SqliteSaver(sqlite3.connect(path, check_same_thread=False, factory=Uncommitted))


@pytest.mark.parametrize(
    ("checkpointer", "alternatives", "durability"),
    [
        (SAVERS.sqlite, "A,D,kill", "sync"),
        pytest.param(SAVERS.sqlite, "A,D,kill", "exit", marks=pytest.mark.full),
        (SAVERS.async_sqlite, "A,kill", "async"),
    ],
)
def test_a_thread_in_a_file_survives_cuts_and_kills(checkpointer: Any, alternatives: str, durability: str) -> None:
    system = dl.graph(two_steps(is_async=checkpointer is SAVERS.async_sqlite), GIVEN)
    options: dict[str, Any] = {"checkpointer": checkpointer, "durability": durability}
    report = assert_survives_cuts(system, alternatives=alternatives, runs=18, **options)
    assert report.judged["resume"] == report.trials


def test_after_a_kill_a_file_is_opened_anew_and_nowhere_else() -> None:
    folders: list[str] = []

    def counted(folder: str) -> Any:
        folders.append(folder)
        return SAVERS.sqlite(folder)

    cut_at(two_steps(), GIVEN[0], "D", 0.005, checkpointer=counted)
    assert len(set(folders)) == len(folders) == 3  # undisturbed, the control, and the cut
    folders.clear()
    cut_at(two_steps(), GIVEN[0], "kill", 0.005, checkpointer=counted)
    assert len(folders) == 4
    assert folders[-1] == folders[-2]
    assert not any(os.path.exists(folder) for folder in folders)


@pytest.mark.parametrize(("checkpointer", "is_there"), [(SAVERS.sqlite, True), (never_committed, False)])
def test_a_kill_keeps_what_was_committed_and_nothing_else(checkpointer: Any, is_there: bool) -> None:
    observation = cut_at(two_steps(), GIVEN[0], "kill", 0.008, durability="sync", checkpointer=checkpointer)
    assert observation.saved.is_there is is_there


def test_a_store_that_waits_in_real_time_is_refused_with_the_remedy() -> None:
    class Waiting(InMemorySaver):
        def put(self, *arguments: Any, **options: Any) -> Any:
            os.system("true")
            return super().put(*arguments, **options)

    def made() -> Waiting:
        return Waiting()

    with pytest.raises(NotSimulated, match=r"in a function with a parameter \(--checkpointer\)"):
        crash_test(dl.graph(two_steps(), GIVEN), alternatives="A,kill", runs=2, checkpointer=made)

    def opened(folder: str) -> Waiting:
        return Waiting()

    assert crash_test(dl.graph(two_steps(), GIVEN), alternatives="A", runs=2, checkpointer=opened).holds


# ---- a server of Postgres


@pytest.mark.usefixtures("postgres_server")
def test_a_thread_on_a_server_survives_cuts_and_kills() -> None:
    system, checkpointer = dl.graph(two_steps(), GIVEN), f"{ROOT}/examples/crash/savers.py:postgres"
    report = assert_survives_cuts(system, alternatives="A,D,kill", checkpointer=checkpointer, runs=18)
    assert report.judged["resume"] == report.trials
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect() as connection:
        assert connection.execute("select count(*) from checkpoints").fetchone() == (0,)


# ---- the copy of a thread that the user's next message is sent to


def together(before: Sequence[AnyMessage], writes: Sequence[Any]) -> list[AnyMessage]:
    return [*before, *(message for write in writes for message in write)]


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(together, snapshot_frequency=50)]


def test_the_copy_of_a_thread_has_its_changes_and_its_pending_writes() -> None:
    def fail(state: Talk) -> Talk:
        raise ValueError("no harbour")

    builder = StateGraph(Talk)
    builder.add_node("first", lambda state: {"messages": [AIMessage("first", id="a")]})
    builder.add_node("second", lambda state: {"messages": [AIMessage("second", id="b")]})
    builder.add_node("failing", fail)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("first", "failing")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="no harbour"):
        graph.invoke({"messages": [HumanMessage("Hello", id="q")]}, {"configurable": {"thread_id": "1"}})
    thread, saved = VirtualClock().run(read_thread, graph, "1", async_only=False)
    assert thread is not None
    assert not saved.error
    config: Any = {"configurable": {"thread_id": "copy"}}
    copied = builder.compile(checkpointer=thread.copied("copy")).get_state(config)
    assert [message.text for message in copied.values["messages"]] == ["Hello", "first", "second"]
    assert copied.next == graph.get_state({"configurable": {"thread_id": "1"}}).next == ("failing",)
