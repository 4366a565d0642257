"""Spec 4, threads: everything of the standard library that waits does so in virtual time."""

from __future__ import annotations

import concurrent.futures as cf
import importlib
import os
import queue
import sys
import threading
import time
import types
from collections.abc import Callable
from time import monotonic as aliased_monotonic
from typing import Any

import pytest
from in_threads import in_threads

from docmind_lab.virtual_time import VirtualClock


def test_sleep_moves_every_clock_of_the_time_module_at_once() -> None:
    def main() -> str:
        readings = time.monotonic, time.perf_counter, time.time, aliased_monotonic
        before = [read() for read in readings]
        time.sleep(86_000)
        assert [read() - was for read, was in zip(readings, before, strict=True)] == [86_000.0] * 4
        assert time.monotonic_ns() == time.perf_counter_ns() == 86_000 * 10**9
        assert time.time_ns() == (1_750_000_000 + 86_000) * 10**9
        return "done"

    clock = VirtualClock()
    assert clock.run(main) == "done"
    assert clock.now() == clock.returned_at_s == clock.quiescent_at_s == 86_000.0


@pytest.mark.parametrize(("text", "error"), [("-1", ValueError), ("nan", ValueError), ("inf", OverflowError)])
def test_a_sleep_that_cannot_be_raises_what_it_always_does(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        VirtualClock().run(time.sleep, float(text))


def test_threads_interleave_in_the_order_of_time_and_a_tie_goes_to_the_earlier_sleeper() -> None:
    clock = VirtualClock()
    log: list[tuple[str, float]] = []

    def worker(name: str, *delays_s: float) -> Callable[[], None]:
        def work() -> None:
            for delay_s in delays_s:
                time.sleep(delay_s)
                log.append((name, clock.now()))

        return work

    clock.run(in_threads, worker("a", 1, 3, 5), worker("b", 2, 1, 1))
    assert log == [("a", 1), ("b", 2), ("b", 3), ("a", 4), ("b", 4), ("a", 9)]


def test_pools_futures_and_their_timeouts() -> None:
    clock = VirtualClock()

    def main() -> None:
        with cf.ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(time.sleep, seconds) for seconds in (3, 1, 2, 5)]
            with pytest.raises(cf.TimeoutError):
                futures[0].result(timeout=0.5)
            assert clock.now() == 0.5
            done, _ = cf.wait(futures, timeout=2)
            assert len(done) == 2
            assert clock.now() == 2.5
            assert [futures.index(future) for future in cf.as_completed(futures)][-2:] == [0, 3]
        assert clock.now() == 6

    clock.run(main)


def test_a_pending_future_can_be_cancelled_alone_or_with_its_pool_and_a_running_one_cannot() -> None:
    def main() -> list[str]:
        ended: list[str] = []
        pool = cf.ThreadPoolExecutor(1)
        running = pool.submit(lambda: (time.sleep(10), ended.append("running")))
        pending = [pool.submit(ended.append, "pending") for _ in range(3)]
        time.sleep(1)
        assert not running.cancel()
        assert pending[0].cancel()
        with pytest.raises(cf.CancelledError):
            pending[0].result()
        pool.shutdown(cancel_futures=True)
        assert time.monotonic() == 10
        return ended

    assert VirtualClock().run(main) == ["running"]


def test_events_conditions_semaphores_and_queues_time_out() -> None:
    clock = VirtualClock()

    def main() -> None:
        condition = threading.Condition()
        assert not threading.Event().wait(1)
        assert clock.now() == 1
        with condition:
            assert not condition.wait(1)
            assert not condition.wait_for(lambda: False, timeout=1)
        assert clock.now() == 3
        assert not threading.Semaphore(0).acquire(timeout=1)
        for waiting in (queue.Queue(), queue.SimpleQueue(), queue.PriorityQueue()):
            with pytest.raises(queue.Empty):
                waiting.get(timeout=1)
        assert clock.now() == 7
        full: queue.Queue[int] = queue.Queue(1)
        full.put(0)
        with pytest.raises(queue.Full):
            full.put(1, timeout=1)
        assert clock.now() == 8

    clock.run(main)


def test_timers_barriers_and_joins() -> None:
    clock = VirtualClock()

    def main() -> None:
        event = threading.Event()
        threading.Timer(4, event.set).start()
        assert event.wait(10)
        assert clock.now() == 4
        sleeper = threading.Thread(target=time.sleep, args=(10,))
        sleeper.start()
        sleeper.join(3)
        assert sleeper.is_alive()
        assert clock.now() == 7
        sleeper.join()
        assert not sleeper.is_alive()
        assert clock.now() == 14
        barrier = threading.Barrier(2)
        in_threads(lambda: (time.sleep(3), barrier.wait()), lambda: (barrier.wait(), time.sleep(1)))
        assert clock.now() == 18

    clock.run(main)


def test_a_thread_is_started_once_and_does_not_join_itself() -> None:
    def main() -> None:
        thread = threading.Thread(target=int)
        thread.start()
        with pytest.raises(RuntimeError):
            thread.start()
        with pytest.raises(RuntimeError):
            threading.current_thread().join()

    VirtualClock().run(main)


@pytest.mark.parametrize("make", [lambda: threading.Lock(), lambda: threading.RLock()], ids=["Lock", "RLock"])
def test_a_lock_held_across_a_sleep_is_handed_on_in_order(make: Callable[[], threading.Lock]) -> None:
    clock = VirtualClock()
    order: list[tuple[str, float]] = []

    def main() -> None:
        lock = make()

        def hold(name: str, delay_s: float) -> None:
            time.sleep(delay_s)
            with lock:
                time.sleep(5)
                order.append((name, clock.now()))

        in_threads(lambda: hold("a", 0), lambda: hold("b", 1), lambda: hold("c", 2))

    clock.run(main)
    assert order == [("a", 5), ("b", 10), ("c", 15)]


def test_a_lock_times_out_and_says_what_a_real_one_says_about_misuse() -> None:
    def main() -> None:
        lock = threading.Lock()
        assert lock.acquire()
        assert not lock.acquire(False)
        assert not lock.acquire(timeout=2)
        assert time.monotonic() == 2
        for blocking, timeout in ((True, -2.0), (False, 1.0)):
            with pytest.raises(ValueError, match="timeout"):
                lock.acquire(blocking, timeout)
        lock.release()
        assert not lock.locked()
        with pytest.raises(RuntimeError):
            lock.release()
        with pytest.raises(RuntimeError):
            threading.RLock().release()

    VirtualClock().run(main)


def test_a_real_lock_is_still_an_instance_of_its_type_during_a_run() -> None:
    real_queue, real_lock = queue.SimpleQueue(), threading.Lock()

    def main() -> bool:
        # Up to 3.12 threading.Lock is a function outside a run, and no type to ask for.
        lock_type: Any = threading.Lock
        assert isinstance(real_lock, lock_type)
        assert isinstance(threading.Lock(), lock_type)
        return isinstance(real_queue, queue.SimpleQueue) and isinstance(queue.SimpleQueue(), queue.SimpleQueue)

    assert VirtualClock().run(main)


def test_a_reentrant_lock_in_a_condition_gives_up_all_its_turns_while_it_waits() -> None:
    def main() -> float:
        condition = threading.Condition(threading.RLock())

        def notify() -> None:
            time.sleep(2)
            with condition:
                condition.notify()

        threading.Thread(target=notify).start()
        with condition, condition:
            assert condition.wait(10)
        return time.monotonic()

    assert VirtualClock().run(main) == 2


def test_the_end_of_a_wait_that_timed_out_does_not_cut_a_later_one_short() -> None:
    def main() -> float:
        sleeper = threading.Thread(target=time.sleep, args=(10,))
        sleeper.start()
        sleeper.join(1)
        time.sleep(100)
        return time.monotonic()

    assert VirtualClock().run(main) == 101


def test_events_and_queues_made_before_the_run_can_be_waited_on() -> None:
    event, pending = threading.Event(), queue.Queue()

    def main() -> float:
        in_threads(lambda: (time.sleep(2), event.set()), lambda: (event.wait(), pending.put(time.monotonic())))
        assert pending.get(timeout=5) == 2
        with pytest.raises(queue.Empty):
            pending.get(timeout=5)
        return time.monotonic()

    assert VirtualClock().run(main) == 7


def test_what_an_actor_made_works_for_everyone_after_the_run() -> None:
    lock, reentrant, items = VirtualClock().run(lambda: (threading.Lock(), threading.RLock(), queue.SimpleQueue()))
    with lock:
        assert not lock.acquire(timeout=0.001)
    with reentrant, reentrant:
        pass
    items.put(1)
    assert items.get_nowait() == 1
    with pytest.raises(queue.Empty):
        items.get(timeout=0.001)


def test_a_destructor_may_put_into_a_pools_queue_in_the_middle_of_a_put() -> None:
    # What a pool's weak reference does when the collector finds the pool; a queue made of locks would wait for itself.
    def main() -> list[str]:
        items = queue.SimpleQueue()

        class PutsWhenItDies:
            def __del__(self) -> None:
                items.put("from the destructor")

        def put() -> None:
            dying = PutsWhenItDies()
            items.put("first")
            del dying

        threading.Thread(target=put).start()
        return [items.get(timeout=1), items.get(timeout=1)]

    assert VirtualClock().run(main) == ["first", "from the destructor"]


def test_the_default_size_of_a_pool_does_not_depend_on_the_machine() -> None:
    def main() -> tuple[int | None, float]:
        with cf.ThreadPoolExecutor() as pool:
            list(pool.map(time.sleep, [1.0] * 24))
        return os.cpu_count(), time.monotonic()

    assert VirtualClock(cpus=8).run(main) == (8, 2.0)
    assert VirtualClock(cpus=20).run(main) == (20, 1.0)


def made(name: str) -> tuple[float, float]:
    """What the module has, and when its import ended."""
    return importlib.import_module(name).made, time.monotonic()


def made_by(*names: str) -> list[tuple[float, float]]:
    """What threads get that import these modules side by side."""
    with cf.ThreadPoolExecutor(len(names)) as pool:
        return list(pool.map(made, names))


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_threads_that_import_a_module_wait_in_virtual_time_for_the_one_that_executes_it(
    write_modules: Callable[..., None], seed: int | None
) -> None:
    write_modules(naps="import time\ntime.sleep(3)\nmade = time.monotonic()\n")
    assert VirtualClock(seed=seed, stall_after_s=2.0).run(made_by, *["naps"] * 3) == [(3.0, 3.0)] * 3


def test_modules_that_import_each_other_from_two_threads_are_imported_as_in_real_time(
    write_modules: Callable[..., None],
) -> None:
    text = "import time\ntime.sleep(3)\nimport {}\nmade = time.monotonic()\n"
    write_modules(napper_a=text.format("napper_b"), napper_b=text.format("napper_a"))
    both = VirtualClock(stall_after_s=2.0).run(made_by, "napper_a", "napper_b")
    assert [at_s for at_s, _ in both] == [3.0, 3.0]


def test_a_module_whose_import_a_run_cut_is_imported_afterwards(write_modules: Callable[..., None]) -> None:
    write_modules(is_cut="import time\ntime.sleep(60)\nmade = True\n")

    def by_two() -> None:
        for _ in range(2):
            threading.Thread(target=made, args=("is_cut",), daemon=True).start()
        time.sleep(1)
        raise ValueError("the run ends here")

    with pytest.raises(ValueError, match="the run ends here"):
        VirtualClock(stall_after_s=2.0).run(by_two)
    write_modules(is_cut="made = True\n")
    sys.modules.pop("is_cut", None)
    importlib.invalidate_caches()
    assert [is_made for is_made, _ in made_by("is_cut", "is_cut")] == [True, True]


class _Compiled(types.ModuleType):
    """What cffi makes of a compiled library: it passes for a module, and has no namespace."""

    @property
    def __dict__(self) -> dict[str, object]:  # type: ignore[override]
        raise AttributeError("no __dict__")


def test_a_compiled_library_that_passes_for_a_module_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_compiled_library", _Compiled("_compiled_library"))
    assert VirtualClock().run(lambda: 1) == 1
