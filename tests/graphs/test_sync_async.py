"""Steps: one logic, driven by blocking code and by an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.systems.base.steps_node import StepsNode

Drive = Callable[[Steps[Any]], Any]
DRIVERS: list[Drive] = [finish, lambda steps: asyncio.run(afinish(steps))]
both_modes = pytest.mark.parametrize("drive", DRIVERS, ids=["blocking", "async"])


def given(value: Any) -> Operation:
    async def awaited() -> Any:
        return blocking()

    def blocking() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return Operation(blocking, awaited)


@both_modes
def test_what_is_waited_for_comes_back_where_it_was_yielded(drive: Drive) -> None:
    def steps() -> Steps[list[int]]:
        first = yield given(1)
        second = yield given(first + 1)
        return [first, second]

    assert drive(steps()) == [1, 2]


@both_modes
def test_an_error_of_a_wait_is_raised_where_it_was_yielded(drive: Drive) -> None:
    def steps() -> Steps[str]:
        try:
            yield given(KeyError("gone"))
        except KeyError:
            return (yield given("caught"))
        return "not raised"

    assert drive(steps()) == "caught"


@both_modes
def test_an_error_that_nobody_catches_ends_the_steps_with_their_finally(drive: Drive) -> None:
    ended: list[str] = []

    def steps() -> Steps[None]:
        try:
            yield given(ValueError("broken"))
        finally:
            ended.append("finally")

    with pytest.raises(ValueError, match="broken"):
        drive(steps())
    assert ended == ["finally"]


class _Counted(TypedDict):
    count: int


def test_a_node_of_steps_runs_in_the_colour_of_its_graph() -> None:
    threads: list[str] = []

    def ask() -> Operation:
        async def awaited() -> int:
            threads.append("async")
            return 2

        def blocking() -> int:
            threads.append("blocking")
            return 1

        return Operation(blocking, awaited)

    def count(state: _Counted, config: Any) -> Steps[dict[str, int]]:
        return {"count": state["count"] + (yield ask())}

    graph = StateGraph(_Counted)
    graph.add_node("count", StepsNode("count", count))
    graph.add_edge(START, "count")
    graph.add_edge("count", END)
    made = graph.compile()
    assert made.invoke({"count": 0}) == {"count": 1}
    assert asyncio.run(made.ainvoke({"count": 0})) == {"count": 2}
    assert threads == ["blocking", "async"]


def test_a_node_that_waits_for_nothing_is_an_ordinary_function() -> None:
    graph = StateGraph(_Counted)
    graph.add_node("count", StepsNode("count", lambda state, config: {"count": state["count"] + 1}))
    graph.add_edge(START, "count")
    made = graph.compile()
    assert made.invoke({"count": 0}) == asyncio.run(made.ainvoke({"count": 0})) == {"count": 1}
