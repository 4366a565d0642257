"""Spec 4, asyncio: the loop, its timeouts, its threads; spec 1: inside a loop that runs already."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import sys
import threading
import time
from typing import Any

import pytest
from in_threads import in_threads

from docmind_lab.core.errors import NotSimulated
from docmind_lab.virtual_time import VirtualClock
from docmind_lab.virtual_time.virtual_event_loop import VirtualEventLoop


def test_timeouts_and_executors_share_one_time() -> None:
    clock = VirtualClock()

    async def main() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualEventLoop)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(10)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 2)
        assert clock.now() == loop.time() == time.monotonic() == 5
        values = await asyncio.gather(
            asyncio.to_thread(time.sleep, 10),
            asyncio.sleep(4, "x"),
            loop.run_in_executor(None, lambda: (time.sleep(2), clock.now())[1]),
        )
        assert values == [None, "x", 7]
        assert clock.now() == 15
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.to_thread(time.sleep, 10)
        return clock.now()

    assert clock.run_async(main) == 18
    # asyncio.run waits for its threads, as it really does.
    assert clock.returned_at_s == 25


def test_a_task_group_cancels_the_others_when_one_fails() -> None:
    ended: list[tuple[str, float]] = []

    async def child(name: str, seconds: float, fails: bool = False) -> None:
        try:
            await asyncio.sleep(seconds)
            if fails:
                raise ValueError(name)
        finally:
            ended.append((name, time.monotonic()))

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(child("slow", 10))
            group.create_task(child("fails", 3, fails=True))
            group.create_task(child("quick", 1))

    with pytest.raises(ExceptionGroup):
        VirtualClock().run_async(main)
    assert ended == [("quick", 1), ("fails", 3), ("slow", 3)]


def test_run_coroutine_threadsafe_and_a_blocking_call_in_a_loop() -> None:
    clock = VirtualClock()

    def main() -> None:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        assert asyncio.run_coroutine_threadsafe(asyncio.sleep(5, "slept"), loop).result(timeout=6) == "slept"
        with pytest.raises(cf.TimeoutError):
            asyncio.run_coroutine_threadsafe(asyncio.sleep(5), loop).result(timeout=1)
        assert clock.now() == 6

        async def block() -> float:
            # Somebody who calls into the loop meanwhile must not cut this short.
            time.sleep(10)
            return clock.now()

        blocked = asyncio.run_coroutine_threadsafe(block(), loop)
        time.sleep(1)
        loop.call_soon_threadsafe(lambda: None)
        assert blocked.result() == 16
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    clock.run(main)


async def three_from_a_queue(factory: Any = None) -> list[int]:
    if factory:
        asyncio.get_running_loop().set_task_factory(factory)
    channel: asyncio.Queue[int] = asyncio.Queue()

    async def produce() -> None:
        for item in range(3):
            await asyncio.sleep(1)
            await channel.put(item)

    task = asyncio.create_task(produce())
    got = [await channel.get() for _ in range(3)]
    await task
    return got


def test_queues_and_two_loops_in_two_threads() -> None:
    clock = VirtualClock()
    assert clock.run_async(three_from_a_queue) == [0, 1, 2]
    assert clock.now() == 3

    def two_loops() -> float:
        in_threads(*[lambda: asyncio.run(three_from_a_queue())] * 2)
        return time.monotonic()

    assert VirtualClock().run(two_loops) == 3


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks() -> None:
    assert VirtualClock().run_async(three_from_a_queue, asyncio.eager_task_factory) == [0, 1, 2]


def test_an_exchange_between_two_coroutines_at_one_instant_does_not_starve_a_thread() -> None:
    async def main() -> float:
        stop = threading.Event()
        threading.Thread(target=stop.set).start()
        while not stop.is_set():
            await asyncio.sleep(0)
        return time.monotonic()

    assert VirtualClock().run_async(main) == 0


def test_a_virtual_loop_refuses_sockets_by_name_so_that_no_fallback_goes_on() -> None:
    async def with_fallback() -> str:
        try:
            await asyncio.open_connection("127.0.0.1", 9)
        except Exception:  # noqa: BLE001 - as a fallback does
            return "fallback"
        return "connected"

    with pytest.raises(NotSimulated, match=r"create_connection of an event loop.*test_virtual_asyncio\.py:\d+"):
        VirtualClock().run_async(with_fallback)


def test_a_run_inside_a_running_loop_as_in_a_notebooks_cell() -> None:
    async def cell() -> str:
        return VirtualClock().run_async(asyncio.sleep, 1000, "slept")

    assert asyncio.run(cell()) == "slept"


def test_a_loop_left_running_is_closed_and_its_coroutines_are_ended_at_the_runs_end() -> None:
    ended: list[float] = []

    async def hangs() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(time.monotonic())

    def main() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever).start()
        asyncio.run_coroutine_threadsafe(hangs(), loop)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(7), loop)
        time.sleep(5)
        return loop

    clock = VirtualClock()
    loop = clock.run(main)
    assert loop.is_closed()
    assert ended == [7.0]
    assert clock.returned_at_s == 5
