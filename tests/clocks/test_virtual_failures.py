"""Spec 7: a run that cannot go on says so at once, with where everyone waits."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import itertools
import os
import queue
import signal
import threading
import time
from collections.abc import Callable

import pytest

from docmind_lab.core.errors import SimulatedDeadlock, SimulationError, SimulationStalled
from docmind_lab.virtual_time import VirtualClock


def abba() -> None:
    one, other = threading.Lock(), threading.RLock()

    def take(first: threading.Lock, second: threading.Lock) -> None:
        with first:
            time.sleep(1)
            with second:
                pass

    threads = [
        threading.Thread(target=take, args=(one, other), name="one"),
        threading.Thread(target=take, args=(other, one), name="other"),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def never_set_event() -> None:
    threading.Event().wait()


def unset_future() -> None:
    cf.Future[int]().result()


def empty_queue() -> None:
    queue.Queue[int]().get()


async def _event_of_a_loop() -> None:
    await asyncio.Event().wait()


def event_of_a_loop() -> None:
    asyncio.run(_event_of_a_loop())


def thread_of_a_loop() -> None:
    asyncio.run(asyncio.to_thread(unset_future))


@pytest.mark.parametrize(
    ("main", "waits_for"),
    [
        (abba, ["one waits for a lock at ", "other waits for a lock at ", "main waits for the end of one at ", "take"]),
        (never_set_event, ["main waits for Event.wait at "]),
        (unset_future, ["main waits for Future.result at "]),
        (empty_queue, ["main waits for Queue.get at "]),
        (event_of_a_loop, ["_event_of_a_loop"]),
        (thread_of_a_loop, ["unset_future"]),
    ],
)
def test_a_deadlock_is_seen_at_once_with_where_everyone_waits_and_what_for(
    main: Callable[[], None], waits_for: list[str]
) -> None:
    start_s = time.perf_counter()
    clock = VirtualClock()
    with pytest.raises(SimulatedDeadlock, match="every actor waits") as caught:
        clock.run(main)
    # Milliseconds in fact; a second leaves room for a machine under load.
    assert time.perf_counter() - start_s < 1.0
    report = str(caught.value)
    assert [text for text in waits_for if text not in report] == []
    assert "- main waits for" in report
    assert "test_virtual_failures.py:" in report
    assert clock.now() <= 1.0


def test_a_deadlock_cannot_be_swallowed() -> None:
    def main() -> None:
        while True:
            try:
                unset_future()
            except Exception:  # noqa: BLE001 - the program under test
                continue

    with pytest.raises(SimulatedDeadlock):
        VirtualClock().run(main)


# What is raised in its thread from outside may fall into a callback of the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("soon_given_up")
def test_a_function_that_catches_everything_for_ever_is_given_up() -> None:
    stop = threading.Event()

    def main() -> None:
        lock = threading.Lock()
        lock.acquire()
        while not stop.is_set():
            try:
                lock.acquire()
            except BaseException:  # noqa: BLE001 - the program under test
                continue

    with pytest.raises(SimulatedDeadlock):
        VirtualClock(stall_after_s=0.2).run(main)
    stop.set()


def waits_while_it_is_unwound() -> None:
    try:
        unset_future()
    finally:
        time.sleep(100)


# asyncio.run gives its threads 300 seconds from 3.12 on, and warns; in a deadlock they are in vain.
@pytest.mark.parametrize("main", [thread_of_a_loop, waits_while_it_is_unwound])
def test_unwinding_after_a_deadlock_spends_no_virtual_time(main: Callable[[], None]) -> None:
    clock = VirtualClock()
    with pytest.raises(SimulatedDeadlock):
        clock.run(main)
    assert clock.now() == 0


def stalled_message(stuck: Callable[[], object], stall_after_s: float = 0.3) -> str:
    def main() -> None:
        with cf.ThreadPoolExecutor(2, thread_name_prefix="worker") as pool:
            pool.submit(time.sleep, 5)
            pool.submit(stuck).result()

    clock = VirtualClock(stall_after_s=stall_after_s)
    with pytest.raises(SimulationStalled, match="did not wait virtually") as caught:
        clock.run(main)
    with pytest.raises(SimulationError, match="make a new clock"):
        clock.run(int)
    return str(caught.value)


@pytest.mark.usefixtures("soon_given_up")
def test_a_real_pipe_is_a_stall_and_once_it_has_bytes_every_thread_ends() -> None:
    readable, writable = os.pipe()

    def read_pipe() -> None:
        os.read(readable, 1)

    report = stalled_message(read_pipe)
    assert "worker_1 waits for something real at " in report
    assert "read_pipe" in report
    assert "- main waits for Future.result" in report
    # Lets the stuck thread come back: the fixture sees that all of them end then.
    os.write(writable, b"a")
    os.close(writable)
    time.sleep(0.05)
    os.close(readable)


@pytest.mark.usefixtures("soon_given_up")
def test_a_lock_that_a_foreign_thread_holds_is_a_stall() -> None:
    lock = threading.Lock()
    with lock:
        assert "worker_1" in stalled_message(lock.acquire)


def test_ctrl_c_reaches_the_function_where_it_waits() -> None:
    unwound: list[str] = []

    def main() -> None:
        try:
            for number in itertools.count():
                time.sleep(0.001)
                if number == 100:
                    signal.raise_signal(signal.SIGINT)
        finally:
            unwound.append("main")

    with pytest.raises(KeyboardInterrupt):
        VirtualClock(horizon_s=1e9).run(main)
    assert unwound == ["main"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
