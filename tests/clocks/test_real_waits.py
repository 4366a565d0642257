"""Waits in real time are simulated, refused by name, or seen: none of them silently takes no virtual time."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import contextlib
import ctypes
import gc
import importlib
import multiprocessing
import os
import select
import selectors
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from docmind_lab.core.errors import NotSimulated, SimulationStalled
from docmind_lab.virtual_time import VirtualClock, outside_simulation
from docmind_lab.virtual_time.kernel import calling_actor

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a thread does")
# What each of these waits for in real time; a wait of 0.1 s is always seen.
REAL_S = 0.3


def sleep_in_a_default(nap: Callable[[float], None] = time.sleep) -> None:
    nap(REAL_S)


class Napper:
    nap = time.sleep


def sleep_in_a_class() -> None:
    Napper.nap(REAL_S)


def compiled_sleep() -> None:
    ctypes.CDLL(None).usleep(int(REAL_S * 1e6))


def busy_database() -> None:
    address = f"file:{threading.get_ident()}?mode=memory&cache=private"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        database.create_function("wait", 0, lambda: REAL_SLEEP(REAL_S))
        database.execute("select wait()")


# Out of reach of the run, which replaces names of modules only.
REAL_SLEEP = [time.sleep][0].__call__


def short_sleeps() -> None:
    for _ in range(12):
        REAL_SLEEP(0.06)


def foreign_lock(lock: Any = threading.Lock()) -> None:  # noqa: B008 - made before the run
    lock.acquire()
    lock.acquire(timeout=REAL_S)


def pipe() -> None:
    readable, writable = os.pipe()
    threading.Timer(0, lambda: None).cancel()
    with outside_simulation():
        thread = threading.Thread(target=lambda: (REAL_SLEEP(REAL_S), os.write(writable, b"a")))
        thread.start()
    os.read(readable, 1)
    with outside_simulation():
        thread.join()


@linux
@pytest.mark.wall
@pytest.mark.parametrize(
    "wait",
    [sleep_in_a_default, sleep_in_a_class, compiled_sleep, busy_database, short_sleeps, foreign_lock, pipe],
)
def test_a_wait_that_nothing_stands_for_is_seen_and_named_by_its_line(wait: Callable[[], None]) -> None:
    threads = set(threading.enumerate())
    clock = VirtualClock()
    clock.where = lambda thread_id: "in node fetch"
    with pytest.raises(NotSimulated) as raised:
        clock.run(wait)
    said = str(raised.value)
    assert said.startswith("a wait in real time, which takes no virtual time, at "), said
    assert f"{Path(__file__).name}:" in said
    assert "(in node fetch); " in said
    assert "cannot be judged in virtual time" in said
    assert set(threading.enumerate()) == threads
    # The process goes on with other clocks.
    assert VirtualClock().run(lambda: time.sleep(1) or "on") == "on"


@linux
@pytest.mark.wall
@pytest.mark.usefixtures("soon_given_up")
def test_a_wait_without_an_end_is_given_up_within_seconds() -> None:
    readable, writable = os.pipe()
    began_at = time.monotonic()
    with pytest.raises(NotSimulated, match="os_read_for_ever"):
        VirtualClock(stall_after_s=600.0).run(lambda: os_read_for_ever(readable))
    # Half a second to come back, and some for a busy machine; never the 600 s of a stall.
    assert time.monotonic() - began_at < 30.0
    os.write(writable, b"a")


def os_read_for_ever(readable: int) -> None:
    os.read(readable, 1)


@linux
@pytest.mark.wall
def test_no_wait_is_seen_where_an_actor_computes_however_busy_the_machine_is() -> None:
    done = threading.Event()

    def compute_beside() -> None:
        while not done.is_set():
            sum(range(1000))

    others = [threading.Thread(target=compute_beside) for _ in range(4)]
    for other in others:
        other.start()

    def main() -> str:
        for _ in range(5):
            sum(range(2_000_000))
            time.sleep(1.0)
        return "done"

    try:
        assert VirtualClock().run(main) == "done"
    finally:
        done.set()
        for other in others:
            other.join()


class SlowGate:
    """A gate that is opened late: who does it was kept from a core between choosing the next actor and waking it."""

    def __init__(self, gate: Any) -> None:
        self.acquire = gate.acquire
        self._gate = gate

    def release(self) -> None:
        REAL_SLEEP(REAL_S)
        self._gate.release()


@linux
@pytest.mark.wall
def test_a_baton_that_comes_late_is_no_wait_of_who_gets_it() -> None:
    def main() -> str:
        actor: Any = calling_actor()
        actor.gate = SlowGate(actor.gate)
        thread = threading.Thread(target=time.sleep, args=(1.0,))
        thread.start()
        thread.join()
        return "done"

    assert VirtualClock().run(main) == "done"


@pytest.mark.wall
def test_a_wait_outside_the_simulation_is_real_and_nobodys_business_and_virtual_time_stands_still() -> None:
    def main() -> tuple[bool, float]:
        with outside_simulation():
            begun_at = time.perf_counter()
            time.sleep(REAL_S)
            took_s = time.perf_counter() - begun_at
        return took_s >= REAL_S, time.monotonic()

    assert VirtualClock().run(main) == (True, 0.0)


def selector() -> None:
    one, _ = PAIR
    with selectors.DefaultSelector() as chosen:
        chosen.register(one, selectors.EVENT_READ)
        chosen.select(1.0)


def foreign_loop() -> None:
    asyncio.SelectorEventLoop().close()


def datagram() -> None:
    PAIR[0].sendto(b"a", ("127.0.0.1", 9))


def process() -> None:
    multiprocessing.Process(target=int).start()


def process_pool() -> None:
    with cf.ProcessPoolExecutor(1) as pool:
        pool.submit(int).result()


PAIR = socket.socketpair()


@pytest.fixture(scope="module", autouse=True)
def pair_is_closed() -> Iterator[None]:
    yield
    for end in PAIR:
        end.close()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: os.system("sleep 1"), "os.system"),
        (lambda: os.posix_spawn("/bin/sleep", ["sleep", "1"], {}), "os.posix_spawn"),
        (lambda: os.fork(), "os.fork"),
        (process, "multiprocessing.Process.start"),
        (process_pool, "multiprocessing.Process.start"),
        (lambda: select.select([PAIR[0]], [], [], 1.0), "select.select"),
        (selector, "EpollSelector.select" if sys.platform == "linux" else "select"),
        (lambda: PAIR[0].accept(), "socket.accept"),
        (lambda: PAIR[0].connect_ex("/nowhere"), "socket.connect_ex"),
        (lambda: PAIR[0].recvfrom(1), "socket.recvfrom"),
        (datagram, "socket.sendto"),
    ],
)
def test_what_is_known_to_have_no_virtual_time_is_refused_by_name_whatever_catches_it(
    call: Callable[[], object], name: str
) -> None:
    went_on: list[str] = []

    def main() -> None:
        try:
            call()
        except Exception:  # noqa: BLE001 - as people write it
            went_on.append("caught")

    began_at = time.monotonic()
    with pytest.raises(NotSimulated, match=r"has no virtual time, at .*test_real_waits.py") as raised:
        VirtualClock().run(main)
    assert name in str(raised.value)
    assert not went_on
    # At once; the rest is room for a busy machine.
    assert time.monotonic() - began_at < 5.0


# What it leaves half-made complains when it is collected.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_event_loop_that_is_not_the_runs_own_is_refused_by_name() -> None:
    with pytest.raises(NotSimulated, match="an event loop that is not asyncio"):
        VirtualClock().run(foreign_loop)
    gc.collect()


async def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("trio", "run", (nothing,)),
        ("uvloop", "new_event_loop", ()),
        ("gevent", "spawn", (time.time,)),
        ("gevent", "sleep", (1.0,)),
    ],
)
def test_event_loops_of_other_kinds_are_refused_by_name_and_put_back(
    module: str, name: str, arguments: tuple[Any, ...]
) -> None:
    made: Any = importlib.import_module(module)
    real = getattr(made, name)
    with pytest.raises(NotSimulated, match=f"{module}.{name}, an event loop of its own"):
        VirtualClock().run(lambda: getattr(made, name)(*arguments))
    assert getattr(made, name) is real


def test_in_a_thread_of_its_own_a_refused_call_ends_the_run_too() -> None:
    def main() -> None:
        thread = threading.Thread(target=process)
        thread.start()
        thread.join()

    with pytest.raises(NotSimulated, match=r"multiprocessing\.Process\.start"):
        VirtualClock().run(main)


def test_a_select_without_files_is_a_sleep_and_one_that_does_not_wait_is_real() -> None:
    clock = VirtualClock()
    assert clock.run(lambda: (select.select([], [], [], 5.0), select.select([PAIR[0]], [], [], 0))) == (
        ([], [], []),
        ([], [], []),
    )
    assert clock.now() == 5.0


def test_the_clocks_of_the_system_are_virtual_and_those_of_a_cpu_are_not() -> None:
    def main() -> tuple[float, int, float]:
        time.sleep(5.0)
        assert time.clock_gettime(time.CLOCK_PROCESS_CPUTIME_ID) < 5000.0
        monotonic = time.clock_gettime(time.CLOCK_MONOTONIC)
        return monotonic, time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime(time.CLOCK_REALTIME)

    assert VirtualClock().run(main) == (5.0, 5_000_000_000, 1_750_000_005.0)


def test_a_spin_on_a_clock_is_a_stall_that_leaves_no_thread() -> None:
    threads = set(threading.enumerate())

    def spin() -> None:
        while time.clock_gettime(time.CLOCK_MONOTONIC) < 1.0:
            pass

    with pytest.raises(SimulationStalled, match="spin"):
        VirtualClock(stall_after_s=0.3).run(spin)
    assert set(threading.enumerate()) == threads
    assert VirtualClock().run(lambda: time.sleep(1) or "on") == "on"
