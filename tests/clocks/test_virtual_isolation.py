"""Specs 2 and 3: threads outside keep real time and real locks; what is replaced is put back exactly."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import ModuleType

import pytest
from in_threads import in_threads

from docmind_lab.virtual_time import VirtualClock, patches
from docmind_lab.virtual_time.patches import virtual_primitives


@pytest.mark.wall
def test_a_foreign_thread_keeps_real_time_and_real_locks_while_runs_go_on() -> None:
    measured: list[tuple[float, float]] = []
    # Local names: a run finds and replaces those of modules.
    real_lock_type, real_monotonic, real_perf_counter = type(threading.Lock()), time.monotonic, time.perf_counter

    def foreign() -> None:
        for _ in range(4):
            start_s = real_perf_counter()
            time.sleep(0.05)
            assert type(threading.Lock()) is real_lock_type
            assert not threading.Event().wait(0.01)
            with cf.ThreadPoolExecutor(1) as pool:
                pool.submit(time.sleep, 0.01).result()
            asyncio.run(asyncio.sleep(0.01))
            measured.append((real_perf_counter() - start_s, time.monotonic() - real_monotonic()))

    thread = threading.Thread(target=foreign)
    thread.start()
    while thread.is_alive():
        VirtualClock().run(lambda: (time.sleep(1000), asyncio.run(asyncio.sleep(1000))))
    assert len(measured) == 4
    # Real waits of 0.08 s in all; never less, and a virtual reading would be off by the machine's whole uptime.
    assert all(seconds >= 0.08 and abs(offset_s) < 5.0 for seconds, offset_s in measured)


def test_clocks_of_their_own_run_at_once_in_several_threads() -> None:
    clocks = [VirtualClock() for _ in range(4)]
    in_threads(*[functools.partial(clock.run, lambda: [time.sleep(1) for _ in range(50)]) for clock in clocks])
    assert [clock.now() for clock in clocks] == [50] * 4


LATE_MODULE = """
from time import sleep, monotonic as clock
from threading import Lock, RLock
from queue import SimpleQueue

LOCK = Lock()


class Reader:
    read = clock


def nap():
    sleep(7)
    return clock(), Reader().read()
"""


@pytest.fixture
def late_module(write_modules: Callable[..., None]) -> str:
    write_modules(imported_late=LATE_MODULE)
    return "imported_late"


def assert_real(module: ModuleType) -> None:
    assert (module.sleep, module.clock, module.Lock) == (time.sleep, time.monotonic, threading.Lock)
    assert (module.RLock, module.SimpleQueue) == (threading.RLock, cf.thread.queue.SimpleQueue)


def test_a_module_imported_during_a_run_is_virtual_in_it_and_real_after_it(late_module: str) -> None:
    def main() -> tuple[float, float]:
        import imported_late

        with imported_late.LOCK:
            return imported_late.nap()

    assert VirtualClock().run(main) == (7, 7)
    late = sys.modules[late_module]
    assert_real(late)
    # What the module made at its import goes on working, in real time.
    start_s = time.monotonic()
    with late.LOCK:
        assert not late.LOCK.acquire(timeout=0.02)
    assert time.monotonic() - start_s >= 0.02
    assert late.Reader().read() == pytest.approx(time.monotonic(), abs=5.0)


def test_a_module_imported_between_two_runs_is_noticed_and_so_is_a_name_bound_later(late_module: str) -> None:
    VirtualClock().run(int)
    import imported_late

    napped_at_s, read_by_the_class_s = VirtualClock().run(imported_late.nap)
    assert napped_at_s == 7
    # A known limit: a class that took hold of the real function before the run keeps it.
    assert read_by_the_class_s == pytest.approx(time.monotonic(), abs=5.0)
    assert_real(imported_late)
    imported_late.later = time.sleep
    clock = VirtualClock()
    clock.run(lambda: imported_late.later(3))
    assert clock.now() == 3
    assert imported_late.later is time.sleep


def test_a_patch_that_somebody_else_put_in_place_survives_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[str] = []
    original = threading.Thread.start

    def traced(thread: threading.Thread) -> None:
        starts.append(thread.name)
        original(thread)

    def fixed() -> float:
        return 42.0

    monkeypatch.setattr(threading.Thread, "start", traced)
    monkeypatch.setattr(time, "monotonic", fixed)
    VirtualClock().run(int)
    assert threading.Thread.start is traced
    assert time.monotonic is fixed
    assert starts == ["main"]


def test_overlapping_blocks_put_the_names_back_when_the_last_one_ends() -> None:
    real = time.sleep
    with virtual_primitives():
        VirtualClock().run(time.sleep, 1)
        assert time.sleep is not real
    assert time.sleep is real


def test_no_module_holds_a_replacement_after_a_run() -> None:
    VirtualClock().run(time.sleep, 1)
    from docmind_lab.virtual_time import patches

    own = "docmind_lab.virtual_time"
    held = [
        (name, key)
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType) and not name.startswith(own)
        for key, value in list(vars(module).items())
        if id(value) in patches._REAL_FOR
    ]
    assert held == []


OPEN_POOL = """
import concurrent.futures, time
from docmind_lab.virtual_time import VirtualClock
clock = VirtualClock()
clock.run(lambda: concurrent.futures.ThreadPoolExecutor(2).submit(time.sleep, 3600).result())
print(clock)
"""
IMPORTED = """
import time, threading; before = time.sleep, threading.Lock, threading.Thread.start
import docmind_lab.virtual_time
print(before == (time.sleep, threading.Lock, threading.Thread.start))
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [(IMPORTED, "True"), (OPEN_POOL, "VirtualClock(now=3600.000000 s, seed=None)")],
    ids=["importing patches nothing", "a pool is left open"],
)
def test_a_script_runs_and_ends(code: str, printed: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (printed, "")


def test_a_notebooks_output_stream_flushes_in_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Jupyter's flush waits for a thread of Jupyter's own; waited for in virtual time it would be a deadlock.
    requested, flushed = threading.Event(), threading.Event()

    class OutStream:
        def flush(self) -> bool:
            requested.set()
            return flushed.wait(10)

    def jupyters_thread() -> None:
        requested.wait(10)
        flushed.set()

    stub = ModuleType("ipykernel.iostream")
    stub.OutStream = OutStream  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ipykernel.iostream", stub)
    real = vars(OutStream)["flush"]
    thread = threading.Thread(target=jupyters_thread)
    thread.start()
    clock = VirtualClock()
    assert clock.run(lambda: OutStream().flush())
    thread.join()
    assert clock.now() == 0
    assert vars(OutStream)["flush"] is real


class Refusing(dict[str, object]):
    """A module's names that nobody may change."""

    def __setitem__(self, name: str, value: object) -> None:
        raise RuntimeError("step")


def failing_at(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a step of putting the primitives in place raise, once."""
    if step == "look":
        monkeypatch.setattr(patches._Places, "look", lambda self: (_ for _ in ()).throw(RuntimeError("step")))
    elif step == "rebind":
        patches._places.look()
        monkeypatch.setattr(patches._places, "spots", [*patches._places.spots, (Refusing(sleep=time.sleep), "sleep")])
    else:
        replace = patches._replace

        def refusing(owner: object, name: str, virtual: object) -> None:
            if name == step:
                raise RuntimeError("step")
            replace(owner, name, virtual)

        monkeypatch.setattr(patches, "_replace", refusing)


@pytest.mark.parametrize("step", ["look", "rebind", "start", "join", "is_alive", "Future"])
def test_what_cannot_be_put_in_place_leaves_everything_as_it_was(step: str) -> None:
    def held() -> list[object]:
        thread = threading.Thread
        return [time.sleep, time.monotonic, threading.Lock, thread.start, thread.join, thread.is_alive, cf.Future]

    before = held()
    with pytest.MonkeyPatch.context() as failing:
        failing_at(step, failing)
        with pytest.raises(RuntimeError, match="step"):
            VirtualClock().run(time.sleep, 5.0)
    assert held() == before
    assert cf._base.Future is cf.Future
    # The next run is one in virtual time, and puts everything back.
    clock = VirtualClock()
    clock.run(lambda: time.sleep(5.0))
    assert clock.quiescent_at_s == 5.0
    assert held() == before


def test_a_name_of_one_run_that_cannot_be_replaced_is_tried_again_by_the_next() -> None:
    class Owner:
        def ask(self) -> str:
            return "real"

    class Stubborn(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise RuntimeError("step")

    closed = Stubborn("closed", (), {"ask": Owner.ask})
    with (
        pytest.raises(RuntimeError, match="step"),
        patches.patched_for(object(), closed, "ask", lambda actor: "virtual"),
    ):
        pass
    assert not [owner for owner, _ in patches._of_kernels if owner is closed]
