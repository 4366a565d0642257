"""Steps: one logic, driven by blocking code and by an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from docmind_lab.core.deadlines import Deadline, current_deadline, deadline_scope
from docmind_lab.docmind.sync_async import Operation, Steps, StepsNode, afinish, finish, pause, together
from docmind_lab.virtual_time import VirtualClock

Drive = Callable[[Steps[Any]], Any]
DRIVERS: list[Drive] = [finish, lambda steps: asyncio.run(afinish(steps))]
both_colours = pytest.mark.parametrize("drive", DRIVERS, ids=["blocking", "async"])


def given(value: Any) -> Operation:
    async def awaited() -> Any:
        return blocking()

    def blocking() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return Operation(blocking, awaited)


@both_colours
def test_what_is_waited_for_comes_back_where_it_was_yielded(drive: Drive) -> None:
    def steps() -> Steps[list[int]]:
        first = yield given(1)
        second = yield given(first + 1)
        return [first, second]

    assert drive(steps()) == [1, 2]


@both_colours
def test_an_error_of_a_wait_is_raised_where_it_was_yielded(drive: Drive) -> None:
    def steps() -> Steps[str]:
        try:
            yield given(KeyError("gone"))
        except KeyError:
            return (yield given("caught"))
        return "not raised"

    assert drive(steps()) == "caught"


@both_colours
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


@both_colours
def test_branches_give_their_results_in_the_order_given(drive: Drive) -> None:
    def branch(number: int) -> Steps[int]:
        yield pause(0.001 * (3 - number))
        return number

    def steps() -> Steps[list[int]]:
        results: list[int] = yield together([branch(number) for number in range(3)])
        return results

    assert drive(steps()) == [0, 1, 2]


@both_colours
def test_no_branches_give_no_results(drive: Drive) -> None:
    def steps() -> Steps[list[int]]:
        results: list[int] = yield together([])
        return results

    assert drive(steps()) == []


@both_colours
def test_a_branch_that_raises_does_not_stop_the_others(drive: Drive) -> None:
    ended: list[str] = []

    def broken() -> Steps[None]:
        yield given(ValueError("broken"))

    def whole() -> Steps[None]:
        yield pause(0.001)
        ended.append("whole")

    def steps() -> Steps[None]:
        yield together([broken(), whole()])

    with pytest.raises(ValueError, match="broken"):
        drive(steps())
    assert ended == ["whole"]


@both_colours
def test_branches_see_the_deadline_of_whoever_waits_for_them(drive: Drive) -> None:
    deadline = Deadline.after(60.0)

    def branch() -> Steps[Any]:
        yield pause(0.0)
        return current_deadline()

    def steps() -> Steps[Any]:
        with deadline_scope(deadline):
            return (yield together([branch(), branch()]))

    assert drive(steps()) == [deadline, deadline]


@pytest.mark.parametrize("colour", ["blocking", "async"])
def test_no_more_branches_are_under_way_than_allowed(colour: str) -> None:
    lock, under_way, most = threading.Lock(), 0, 0

    def branch() -> Steps[None]:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        yield pause(1.0)
        with lock:
            under_way -= 1

    def steps() -> Steps[None]:
        yield together([branch() for _ in range(6)], at_once=2)

    clock = VirtualClock()
    if colour == "blocking":
        clock.run(finish, steps())
    else:
        clock.run(lambda: asyncio.run(afinish(steps())))
    assert most == 2
    assert clock.now() == pytest.approx(3.0)


def test_a_cancellation_is_raised_inside_every_branch_and_waited_for() -> None:
    heard: list[str] = []

    def branch(name: str) -> Steps[None]:
        try:
            yield pause(60.0)
        except asyncio.CancelledError:
            heard.append(name)
            raise

    def steps() -> Steps[None]:
        yield together([branch("a"), branch("b")])

    async def cancelled() -> None:
        task = asyncio.create_task(afinish(steps()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert heard == ["a", "b"]


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


def test_a_node_of_steps_takes_no_ordinary_function() -> None:
    with pytest.raises(TypeError, match="generator function"):
        StepsNode("plain", lambda state, config: {})  # type: ignore[arg-type,return-value]
