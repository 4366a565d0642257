"""What a program makes at its first use, in a run: pools go on working, loops and threads that ended are named."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from docmind_lab.core.errors import SimulationError
from docmind_lab.virtual_time import VirtualClock


def napped(seconds: float) -> float:
    time.sleep(seconds)
    return time.monotonic()


class Lazy:
    """A module that makes what it needs at its first use."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.made = make, None

    def get(self) -> Any:
        if self.made is None:
            self.made = self.make()
        return self.made


def worker(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, name="worker", daemon=True)
    thread.start()
    return thread


class Answerer:
    """A worker thread that answers each job with "done"; started by `start`."""

    def __init__(self) -> None:
        self.jobs: queue.Queue[queue.Queue[str]] = queue.Queue()

    def start(self) -> threading.Thread:
        return worker(self._work)

    def _work(self) -> None:
        while True:
            self.jobs.get().put("done")

    def ask(self, timeout_s: float | None = None) -> str:
        answer: queue.Queue[str] = queue.Queue()
        self.jobs.put(answer)
        return answer.get(timeout=timeout_s)


def test_a_pool_made_in_one_run_works_in_the_next_and_outside() -> None:
    lazy = Lazy(lambda: cf.ThreadPoolExecutor(2))
    for _ in range(3):
        assert VirtualClock().run(lambda: [lazy.get().submit(napped, 3).result() for _ in range(3)]) == [3, 6, 9]
    assert lazy.get().submit(int, "7").result(timeout=30.0) == 7
    assert list(lazy.get().map(int, "789")) == [7, 8, 9]
    lazy.get().shutdown()


def test_a_pool_made_outside_waits_virtually_in_a_run_and_works_outside_again() -> None:
    """A module makes it as it is imported; its worker then waits for the next job in the queue made there."""
    pool = cf.ThreadPoolExecutor(2)

    def jobs() -> list[float]:
        # The worker waits for its second job while time passes.
        return [(pool.submit(napped, 3).result(), napped(500))[0] for _ in range(3)]

    for _ in range(2):
        assert VirtualClock().run(jobs) == [3, 506, 1009]
    assert list(pool.map(int, "789")) == [7, 8, 9]
    pool.shutdown()


def test_what_a_run_left_in_a_pool_is_not_begun_by_the_next() -> None:
    pools, begun = [], []

    def leave() -> cf.Future[None]:
        pools.append(cf.ThreadPoolExecutor(1))
        pools[0].submit(threading.Event().wait)
        return pools[0].submit(begun.append, "left")

    left = VirtualClock().run(leave)
    assert left.cancelled()
    assert VirtualClock().run(lambda: pools[0].submit(int, "7").result()) == 7
    assert not begun
    pools[0].shutdown()


def test_a_loop_made_in_one_run_is_named_by_the_next_that_uses_it() -> None:
    def start() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop

    lazy = Lazy(start)

    def use() -> str:
        # One that is refused is awaited by nobody.
        with contextlib.closing(asyncio.sleep(1, "slept")) as work:
            return asyncio.run_coroutine_threadsafe(work, lazy.get()).result()

    assert VirtualClock().run(use) == "slept"
    with pytest.raises(
        SimulationError, match=r"the event loop made at .*test_made_in_a_run\.py:\d+ .*start ended with"
    ):
        VirtualClock().run(use)


def test_a_worker_thread_made_in_one_run_is_named_by_the_next_that_hands_it_work() -> None:
    answerer = Answerer()
    lazy = Lazy(answerer.start)

    def use() -> str:
        lazy.get()
        try:
            return answerer.ask(timeout_s=5.0)
        except queue.Empty:
            return "late"  # as a run with a deadline has it

    assert VirtualClock().run(use) == "done"
    with pytest.raises(
        SimulationError, match=r"the thread worker, started at .*test_made_in_a_run\.py:\d+ .*worker, ended"
    ):
        VirtualClock().run(use)


def test_a_worker_that_waits_for_an_event_is_named_by_the_next_run_that_sets_it() -> None:
    wake, done = threading.Event(), threading.Event()

    def work() -> None:
        while True:
            wake.wait()
            wake.clear()
            done.set()

    lazy = Lazy(lambda: worker(work))

    def use() -> bool:
        lazy.get()
        done.clear()
        wake.set()
        return done.wait(5.0)  # as a run with a deadline has it

    assert VirtualClock().run(use)
    with pytest.raises(
        SimulationError, match=r"the thread worker, .* nobody waits for the event that this run has set"
    ):
        VirtualClock().run(use)


def test_a_heartbeat_of_an_earlier_run_may_be_stopped_in_a_later_one() -> None:
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(5.0):
            pass

    VirtualClock().run(worker, beat)
    assert VirtualClock().run(lambda: stop.set() or stop.is_set())


def test_a_worker_that_is_started_again_in_each_run_is_no_error() -> None:
    answerer, threads = Answerer(), []

    def use() -> str:
        if not threads or not threads[-1].is_alive():
            threads.append(answerer.start())
        return answerer.ask()

    assert [VirtualClock().run(use) for _ in range(3)] == ["done"] * 3
    assert len(threads) == 3


def test_a_queue_made_in_a_run_waits_in_real_time_outside() -> None:
    made: queue.SimpleQueue[int] = VirtualClock().run(lambda: queue.SimpleQueue())
    threading.Timer(0.02, made.put, (7,)).start()
    assert made.get(timeout=30.0) == 7
    with pytest.raises(queue.Empty):
        made.get(timeout=0.01)
    made.put(8)
    assert (made.qsize(), made.empty(), made.get_nowait()) == (1, False, 8)
