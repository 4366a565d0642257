"""A fence keeps an old run out of a thread's checkpoints, and changes nothing else."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest
from chains import chain
from langgraph.checkpoint.memory import InMemorySaver

from docmind_lab.alternatives.fence import Fence, FencedSaver, fenced
from docmind_lab.core.clock import WALL
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder

THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    count: int


def counting(saver: Any, at_second_step: Any = lambda: None) -> Any:
    """Two steps that each add one; something happens between them."""

    def first(state: State) -> State:
        return {"count": state["count"] + 1}

    def second(state: State) -> State:
        at_second_step()
        return {"count": state["count"] + 1}

    return chain(State, first=first, second=second).compile(checkpointer=saver)


def test_an_open_fence_lets_every_checkpoint_through() -> None:
    saver = InMemorySaver()
    assert fenced(counting(saver), Fence()).invoke({"count": 0}, THREAD) == {"count": 2}
    assert counting(saver).get_state(THREAD).values == {"count": 2}


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_run_behind_a_closed_fence_goes_on_and_writes_nothing_more(door: str) -> None:
    saver, fence = InMemorySaver(), Fence()
    recorder = Recorder("r", 7, Deadline(at_s=102.0, limit_s=2.0, clock=WALL), WALL)
    runnable = fenced(counting(saver, fence.close), fence, recorder)
    if door == "sync":
        result = runnable.invoke({"count": 0}, THREAD, durability="sync")
    else:
        result = asyncio.run(runnable.ainvoke({"count": 0}, THREAD, durability="sync"))
    assert result == {"count": 2}, "the old run believes that all is well"
    assert counting(saver).get_state(THREAD).values == {"count": 1}
    blocked = [event for event in recorder.snapshot().events if event.event == "checkpoint_blocked"]
    assert len(blocked) == 1


def test_a_later_run_on_the_thread_is_not_touched_by_the_fence_of_an_old_one() -> None:
    saver, fence = InMemorySaver(), Fence()
    fence.close()
    fenced(counting(saver), fence).invoke({"count": 0}, THREAD)
    assert fenced(counting(saver), Fence()).invoke({"count": 5}, THREAD) == {"count": 7}
    assert counting(saver).get_state(THREAD).values == {"count": 7}


def test_a_graph_without_a_checkpointer_needs_no_fence() -> None:
    runnable = counting(None)
    assert fenced(runnable, Fence()) is runnable


def test_reading_and_deleting_go_through_a_closed_fence() -> None:
    saver, fence = InMemorySaver(), Fence()
    counting(saver).invoke({"count": 0}, THREAD)
    fence.close()
    behind = FencedSaver(saver, fence)
    assert behind.get_tuple(THREAD) is not None
    assert len(list(behind.list(THREAD))) == len(list(saver.list(THREAD)))
    behind.delete_thread("t")
    assert saver.get_tuple(THREAD) is None


def test_async_reading_and_deleting_go_through_too() -> None:
    saver = InMemorySaver()
    counting(saver).invoke({"count": 0}, THREAD)

    async def read_and_delete() -> int:
        behind = FencedSaver(saver, Fence())
        assert await behind.aget_tuple(THREAD) is not None
        found = [item async for item in behind.alist(THREAD)]
        await behind.adelete_thread("t")
        return len(found)

    assert asyncio.run(read_and_delete()) > 0
    assert saver.get_tuple(THREAD) is None
