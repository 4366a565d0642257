"""Work that a run leaves behind: the deadline was the answer's, so it goes on once the run is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from held_clients import (
    AsyncGet,
    in_a_thread,
    with_aiohttp,
    with_async_httpx,
    with_async_httpx2,
    with_httpx,
    with_requests,
)
from langgraph.graph import END, START, StateGraph
from manual_clock import ManualClock
from often import often
from stub_server import StubConnection, StubRequest, StubServer
from typing_extensions import TypedDict

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.scope import deadline
from docmind_lab.core.deadlines import CappedTimeout, Deadline, current_deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.virtual_time import VirtualClock

Stub = Callable[..., StubServer]
DEADLINE_S = 0.4
# Past the deadline, so a write under way meets it; the next one begins after it.
WRITE_S = 0.7


class State(TypedDict, total=False):
    path: str


def slow(request: StubRequest, connection: StubConnection) -> None:
    connection.pause(WRITE_S)
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


WRITES: dict[str, AsyncGet] = {
    "httpx": with_async_httpx,
    "httpx2": with_async_httpx2,
    "aiohttp": with_aiohttp,
    "httpx in a thread": in_a_thread(with_httpx),
    "requests in a thread": in_a_thread(with_requests),
}


def written_by(
    write: AsyncGet, url: str, alternative: str, timeout_s: float | None, **options: Any
) -> tuple[str, list[Any]]:
    """Run a graph whose node leaves two writes behind, one after the other; return its outcome and their ends."""
    ends: list[Any] = []
    left: set[asyncio.Task[None]] = set()

    async def remember() -> None:
        for _ in range(2):
            try:
                ends.append(await write(url, timeout_s=timeout_s))
            except BaseException as error:  # noqa: BLE001 - a cut is none of the ordinary ones
                ends.append(type(error).__name__)

    async def work(state: State) -> State:
        left.add(asyncio.create_task(remember()))
        return {}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").add_edge("work", END).compile()

    async def main() -> str:
        result = await dl.enforce(graph, DEADLINE_S, alternative, **options).ainvoke({})
        await asyncio.wait(left)
        return result.outcome

    return asyncio.run(main()), ends


@pytest.mark.wall
@pytest.mark.parametrize("alternative", often(["A", "C", "E"], "A"))
@pytest.mark.parametrize("client", often(WRITES, "httpx", "aiohttp", "requests in a thread"))
def test_what_an_answered_run_left_behind_goes_on(client: str, alternative: str, stub: Stub) -> None:
    """wall: a real deadline passes under a real read. No time is asserted."""
    assert written_by(WRITES[client], stub(slow).url, alternative, 30.0) == ("answered", ["ok", "ok"])


@pytest.mark.wall
@pytest.mark.parametrize("alternative", often(["A", "E"], "E"))
@pytest.mark.parametrize("client", often(WRITES, "httpx2", "requests in a thread"))
def test_it_can_be_cut_at_the_deadline_all_the_same(client: str, alternative: str, stub: Stub) -> None:
    """wall: as above."""
    outcome, ends = written_by(WRITES[client], stub(slow).url, alternative, 30.0, cuts_background=True)
    assert outcome == "answered"
    assert len(ends) == 2
    assert "ok" not in ends


@pytest.mark.wall
@pytest.mark.parametrize("client", often(WRITES, "httpx", "requests in a thread"))
def test_a_clients_own_timeout_applies_to_what_goes_on(client: str, stub: Stub) -> None:
    """wall: the timeout lies between the deadline and the answer, so only the client's own can end the write."""
    outcome, ends = written_by(WRITES[client], stub(slow).url, "E", (DEADLINE_S + WRITE_S) / 2)
    assert outcome == "answered"
    assert ends in ([each] * 2 for each in ("ReadTimeout", "TimeoutError"))


# ---- the hold


def test_what_a_cut_request_leaves_to_a_thread_is_part_of_the_cut() -> None:
    """Such as the end of its trace, whose error takes the place of that of the request."""
    hold = Hold(Deadline(0.0, 1.0))
    with hold_scope(hold):
        work = hold.as_thread_work(int)
        with pytest.raises(RunCut) as refused:
            work()
        assert refused.value.error.stop_reason == "budget_refused"
        hold.cut()
        with pytest.raises(RunCut) as cut:
            work()
        assert cut.value.error.stop_reason == "deadline"


def test_a_released_hold_neither_refuses_nor_is_in_force() -> None:
    hold = Hold(Deadline.after(60))
    with hold_scope(hold):
        capped = CappedTimeout.of(None, hold.deadline or Deadline.after(60))
        assert current_deadline() is hold.deadline
        assert not capped.is_lifted
        hold.release()
        assert (current_deadline(), hold.in_force, hold.is_over) == (None, None, False)
        assert capped.is_lifted
        assert capped.own_s is None
        hold.cancel()
        assert hold.is_over, "a cancelled hold refuses though it was released"


@pytest.mark.parametrize(("outer_s", "inner_s"), [(60, 30), (30, 60)], ids=["a nearer one", "a later one"])
def test_under_another_hold_a_released_one_leaves_that_in_force(outer_s: float, inner_s: float) -> None:
    outer, inner = Hold(Deadline.after(outer_s)), Hold(Deadline.after(inner_s))
    with hold_scope(outer), hold_scope(inner):
        inner.release()
        assert current_deadline() is outer.deadline
        assert inner.in_force is outer.deadline
        outer.release()
        assert (current_deadline(), inner.in_force) == (None, None)


def test_under_a_hold_that_is_released_one_inside_has_its_own_limit_again() -> None:
    outer, inner = Hold(Deadline.after(30)), Hold(Deadline.after(60))
    with hold_scope(outer), hold_scope(inner):
        nearer = inner.in_force
        assert nearer == outer.deadline == current_deadline()
        capped = CappedTimeout.of(None, nearer or Deadline.after(60))
        outer.release()
        assert current_deadline() == inner.in_force == inner.deadline != nearer
        assert capped.is_lifted
        # What waits goes on, to the limit of its own hold.
        rest_s = capped.rest(1.0)
        assert isinstance(rest_s, CappedTimeout)
        assert 30 < rest_s <= 60


def test_under_a_hold_that_is_released_an_async_block_is_not_cancelled_by_its_deadline() -> None:
    async def main() -> None:
        outer = Hold(Deadline.after(0.1))
        with hold_scope(outer):
            async with deadline(20):
                outer.release()
                await asyncio.sleep(1)

    VirtualClock().run_async(main)


def test_a_hold_that_only_tells_cuts_nothing_at_its_deadline() -> None:
    clock = ManualClock()
    outer = Hold(Deadline.after(30, clock))
    with hold_scope(outer):
        of_task = outer.for_task()
        with hold_scope(of_task):
            assert of_task.in_force == outer.in_force == current_deadline()
            assert of_task.ends_by is None
            clock.sleep(31)
            assert (of_task.in_force, of_task.is_over, current_deadline()) == (None, False, None)
            assert outer.is_over
            of_task.cancel()
            assert of_task.is_over


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_threads_of_a_task_that_was_cancelled_are_under_the_deadline_that_it_was_made_under(is_cancelled: bool) -> None:
    async def main() -> Hold:
        of_task = Hold(Deadline.after(30, clock)).for_task()
        task = asyncio.create_task(asyncio.sleep(60 if is_cancelled else 0))
        of_task.tie(task)
        await asyncio.sleep(0)
        if is_cancelled:
            task.cancel()
        await asyncio.wait({task})
        return of_task

    clock = ManualClock()
    of_task = asyncio.run(main())
    assert not of_task.is_over
    clock.advance(31)
    assert of_task.is_over is is_cancelled
