"""Specs 1, 8 and 10: what a run gives back, what it leaves behind, ties, and the price of CPU time."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from in_threads import in_threads

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import ConfigurationError, SimulationError
from docmind_lab.virtual_time import VirtualClock, current_clock
from docmind_lab.virtual_time.virtual_clock import require_supported_python

# ---- a clock


def test_a_virtual_clock_is_a_clock_and_a_deadline_runs_on_it() -> None:
    clock = VirtualClock()

    def main(of: Clock) -> list[float]:
        deadline = Deadline.after(2.0, of)
        of.sleep(1.5)
        left_s = deadline.remaining()
        of.sleep(0.5)
        assert deadline.passed()
        return [left_s, WALL.now()]

    assert clock.name == "virtual"
    assert clock.run(main, clock) == [0.5, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon_s": 0}, "horizon_s must be"),
        ({"horizon_s": float("inf")}, "horizon_s must be finite"),
        ({"stall_after_s": 0.0}, "stall_after_s must be"),
        ({"cpus": 0}, "cpus must be"),
        ({"seed": "7"}, "seed must be"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        VirtualClock(**options)  # type: ignore[arg-type]


def test_another_python_is_refused_with_the_ones_that_work_and_the_wall_clock() -> None:
    with pytest.raises(ConfigurationError, match=r"3\.11, 3\.12, 3\.13, not 3\.14; .*wall clock") as refused:
        require_supported_python((3, 14))
    assert "use one of those" in str(refused.value)
    require_supported_python((3, 13))


def test_sleeping_on_the_clock_outside_its_run_is_refused() -> None:
    with pytest.raises(SimulationError, match="only inside its own run"):
        VirtualClock().sleep(1)


# ---- a run


def test_what_the_function_raises_comes_out_and_the_clock_can_be_used_again() -> None:
    def fail() -> None:
        time.sleep(3)
        raise ValueError("boom")

    def main() -> None:
        with cf.ThreadPoolExecutor(1) as pool:
            pool.submit(fail).result()

    clock = VirtualClock()
    with pytest.raises(ValueError, match="boom"):
        clock.run(main)
    assert clock.now() == clock.returned_at_s == 3
    with pytest.raises(SystemExit):
        clock.run(sys.exit, 3)
    assert clock.run(lambda: time.sleep(1) or clock.now()) == 4


def test_a_run_inside_a_run_is_refused_by_name() -> None:
    def outer() -> None:
        VirtualClock().run(inner)

    def inner() -> None:
        raise AssertionError("never reached")

    with pytest.raises(SimulationError, match=r"inner cannot be run: main is inside a simulation already"):
        VirtualClock().run(outer)


def test_a_second_run_of_a_clock_is_refused_by_name() -> None:
    clock, refused = VirtualClock(), []
    from docmind_lab.virtual_time import outside_simulation

    def other_thread() -> None:
        try:
            clock.run(int)
        except SimulationError as error:
            refused.append(str(error))

    def long_one() -> None:
        with outside_simulation():
            thread = threading.Thread(target=other_thread)
            thread.start()
            thread.join()

    clock.run(long_one)
    assert len(refused) == 1
    assert "long_one" in refused[0]
    assert "int cannot be run" in refused[0]


def test_the_current_clock_is_known_to_actors_only() -> None:
    clock = VirtualClock()
    assert current_clock() is None
    assert clock.run(current_clock) is clock


# ---- what a run leaves behind


def test_an_orphan_goes_on_after_the_return_and_its_job_ends_the_quiet() -> None:
    clock, ended = VirtualClock(), []

    def main() -> float:
        pool = cf.ThreadPoolExecutor(2)
        pool.submit(lambda: (time.sleep(100), ended.append(clock.now())))
        with pytest.raises(cf.TimeoutError):
            pool.submit(time.sleep, 50).result(timeout=10)
        # The pool is never shut down: its idle workers end with the run, and are no work.
        return clock.now()

    assert clock.run(main) == clock.returned_at_s == 10
    assert ended == [100]
    assert clock.quiescent_at_s == 100


def heartbeat() -> None:
    while True:
        time.sleep(1)


def hangs() -> None:
    threading.Event().wait()


def waits_idly() -> None:
    pool = cf.ThreadPoolExecutor(1)
    pool.submit(int).result()
    globals()["kept_pool"] = pool


@pytest.mark.parametrize("left_behind", [heartbeat, hangs, waits_idly])
def test_what_has_no_effect_does_not_put_off_the_quiet(left_behind: Callable[[], None]) -> None:
    clock = VirtualClock(horizon_s=60)

    def main() -> None:
        threading.Thread(target=left_behind).start()
        threading.Thread(target=time.sleep, args=(5,)).start()
        time.sleep(2)

    clock.run(main)
    assert clock.returned_at_s == 2
    assert clock.quiescent_at_s == 5


def test_an_idle_worker_that_is_sent_home_has_no_effect() -> None:
    clock = VirtualClock(horizon_s=60)

    def main() -> None:
        pool = cf.ThreadPoolExecutor(1)
        pool.submit(time.sleep, 5)
        clock.call_at(30.0, lambda: pool.shutdown(wait=False))

    clock.run(main)
    assert clock.quiescent_at_s == 5


def test_an_effect_that_is_noted_counts_and_nothing_after_the_horizon_happens() -> None:
    clock, seen = VirtualClock(horizon_s=60), []

    def server() -> None:
        for _ in range(9):
            time.sleep(12.5)
            clock.note_effect()
            seen.append(clock.now())

    clock.run(lambda: threading.Thread(target=server).start())
    assert seen == [12.5, 25, 37.5, 50]
    assert clock.quiescent_at_s == 50


def test_a_function_that_has_not_returned_at_the_horizon_fails_and_says_so() -> None:
    clock = VirtualClock(horizon_s=60)

    def main() -> None:
        threading.Thread(target=heartbeat, name="heart").start()
        threading.Event().wait()

    with pytest.raises(SimulationError, match="had not returned at the horizon, 60 virtual s") as caught:
        clock.run(main)
    assert "heart waits for time.sleep" in str(caught.value)
    assert clock.now() == 60


def test_the_return_at_the_horizon_itself_is_in_time() -> None:
    clock = VirtualClock(horizon_s=60)
    clock.run(time.sleep, 60)
    assert clock.returned_at_s == 60


def test_the_end_of_the_run_passes_through_finally_blocks_and_pools_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unwound: list[str] = []
    pools: list[cf.ThreadPoolExecutor] = []
    condition_made = threading.Condition()

    def leftover() -> None:
        try:
            with condition_made:
                condition_made.wait()
        finally:
            unwound.append("thread")
            time.sleep(5)

    def job() -> None:
        try:
            time.sleep(10**6)
        finally:
            unwound.append("job")

    def main() -> None:
        threading.Thread(target=leftover).start()
        # Kept, or its worker would end by itself.
        pools.append(cf.ThreadPoolExecutor(1))
        pools[0].submit(job)
        time.sleep(1)

    clock = VirtualClock(horizon_s=60)
    clock.run(main)
    assert sorted(unwound) == ["job", "thread"]
    assert clock.now() <= 60
    assert caplog.records == []


def test_a_thread_that_will_not_end_is_named() -> None:
    stop = threading.Event()

    def stubborn() -> None:
        while not stop.is_set():
            with contextlib.suppress(BaseException):
                time.sleep(1)

    with pytest.raises(SimulationError, match="stubborn caught BaseException"):
        VirtualClock(horizon_s=10).run(lambda: threading.Thread(target=stubborn, name="stubborn").start())
    stop.set()


# ---- ties


def times_out(wait: Callable[[], object]) -> bool:
    try:
        wait()
    except TimeoutError:  # a future's and asyncio's own are this one
        return True
    return False


def late_by_future(deadline_s: float) -> bool:
    with cf.ThreadPoolExecutor(1) as pool:
        future = pool.submit(time.sleep, deadline_s)
        return times_out(lambda: future.result(timeout=deadline_s))


def late_by_future_after_a_step(deadline_s: float) -> bool:
    """The work's sleep is older than the caller's wait."""
    with cf.ThreadPoolExecutor(1) as pool:
        future = pool.submit(time.sleep, deadline_s)
        time.sleep(deadline_s / 2)
        return times_out(lambda: future.result(timeout=deadline_s / 2))


def late_by_cancellation(deadline_s: float) -> bool:
    async def main() -> None:
        async with asyncio.timeout(deadline_s):
            await asyncio.sleep(deadline_s)

    return times_out(lambda: asyncio.run(main()))


def late_by_wait_for_a_thread(deadline_s: float) -> bool:
    async def main() -> None:
        await asyncio.wait_for(asyncio.to_thread(time.sleep, deadline_s), deadline_s)

    return times_out(lambda: asyncio.run(main()))


def late_by_flag(deadline_s: float) -> bool:
    deadline = Deadline.after(deadline_s)
    time.sleep(deadline_s)
    return deadline.passed()


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize(
    "is_late",
    [late_by_future, late_by_future_after_a_step, late_by_cancellation, late_by_wait_for_a_thread, late_by_flag],
)
def test_what_is_ready_exactly_at_the_deadline_is_late_for_every_way_to_enforce_it(
    is_late: Callable[[float], bool], seed: int | None
) -> None:
    assert VirtualClock(seed).run(is_late, 2.0)


def test_timers_of_one_instant_fire_in_order_of_creation_in_threads_and_in_a_loop() -> None:
    fired: list[int] = []

    def main() -> None:
        for number in range(8):
            threading.Thread(target=lambda number=number: (time.sleep(1), fired.append(number))).start()

    async def in_a_loop() -> None:
        loop = asyncio.get_running_loop()
        for number in range(8):
            loop.call_at(5.0, fired.append, number)
        await asyncio.sleep(5)

    VirtualClock().run(main)
    assert fired == list(range(8))
    fired.clear()
    VirtualClock().run_async(in_a_loop)
    assert fired == list(range(8))


# ---- CPU time


def test_cpu_time_is_free_unless_it_is_charged() -> None:
    clock = VirtualClock()

    def main(charge_s: float) -> float:
        for _ in range(10):
            sum(range(10_000))
            clock.charge(charge_s)
            time.sleep(1)
        return time.monotonic()

    assert clock.run(main, 0.0) == 10
    assert VirtualClock.run(clock, main, 0.25) - clock.returned_at_s == 0.0
    assert clock.returned_at_s == 22.5


def test_charged_cpu_time_is_the_one_cpu_of_all_actors() -> None:
    clock = VirtualClock()

    def worker(ended: list[float]) -> None:
        time.sleep(1)
        clock.charge(0.5)
        ended.append(time.monotonic())

    def main() -> list[float]:
        ended: list[float] = []
        in_threads(*[lambda: worker(ended)] * 3)
        return ended

    assert clock.run(main) == [1.5, 2.0, 2.5]


def test_a_charge_outside_a_run_or_below_zero_is_refused() -> None:
    clock = VirtualClock()
    with pytest.raises(SimulationError, match="charge is for"):
        clock.charge(1.0)
    with pytest.raises(SimulationError, match="not -1"):
        clock.run(clock.charge, -1.0)


# ---- what a door needs


class Backend:
    """Stands for a network backend."""

    def connect(self, host: str) -> str:
        """Connect."""
        return f"socket to {host}"


def test_a_patch_of_a_run_is_for_its_actors_and_is_undone_in_the_end() -> None:
    real = vars(Backend)["connect"]
    outside: list[str] = []

    @contextlib.contextmanager
    def door(clock: VirtualClock) -> Iterator[None]:
        with clock.patched(Backend, "connect", lambda backend, host: f"virtual {host} at {clock.now():g}"):
            thread = threading.Thread(target=lambda: outside.append(Backend().connect("a")))
            thread.start()
            thread.join()
            yield

    def main() -> str:
        time.sleep(2)
        return Backend().connect("a")

    assert VirtualClock(on_entry=[door]).run(main) == "virtual a at 2"
    assert outside == ["socket to a"]
    assert vars(Backend)["connect"] is real
    with pytest.raises(ValueError, match="boom"):
        VirtualClock(on_entry=[door]).run(lambda: (_ for _ in ()).throw(ValueError("boom")))
    assert vars(Backend)["connect"] is real


def test_a_function_is_called_at_its_instant_without_a_thread_and_may_wake_actors() -> None:
    clock = VirtualClock()

    def main() -> list[object]:
        answered, log = threading.Event(), []
        clock.call_at(3.0, lambda: (log.append(time.monotonic()), answered.set()))
        clock.call_at(4.0, lambda: log.append("never")).cancel()
        threads = threading.active_count()
        assert answered.wait(10)
        assert threading.active_count() == threads
        clock.call_at(9.0, clock.note_effect)
        return [*log, time.monotonic()]

    assert clock.run(main) == [3.0, 3.0]
    assert clock.quiescent_at_s == 9
    with pytest.raises(SimulationError, match="none is"):
        clock.call_at(1.0, int)


def test_a_function_called_at_its_instant_after_the_last_threads_end_has_virtual_time() -> None:
    clock, seen = VirtualClock(), []

    def main() -> None:
        clock.call_at(7.0, lambda: seen.append(time.monotonic()))
        threading.Thread(target=time.sleep, args=(5,)).start()

    clock.run(main)
    assert seen == [7.0]


def test_a_function_called_at_its_instant_must_not_wait() -> None:
    clock = VirtualClock()

    def main() -> None:
        clock.call_at(1.0, lambda: time.sleep(1))
        time.sleep(5)

    with pytest.raises(SimulationError, match="must not wait"):
        clock.run(main)
