"""The first and the last things in the life of a run: the function's own thread, what it leaves behind, the watch."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

from docmind_lab.clocks.virtual.actors import Actor, SimulationOver, real_join, real_monotonic, this_thread
from docmind_lab.clocks.virtual.kernel import Kernel
from docmind_lab.clocks.virtual.one_core import OneCore
from docmind_lab.clocks.virtual.reports import where_everyone_waits
from docmind_lab.clocks.virtual.threads import become_actor, forget_pool_worker
from docmind_lab.errors import SimulationError, SimulationStalled

# An actor that is ended may wait again while it unwinds, and is ended again; one that does so this often never stops.
_ENDING_ROUNDS = 100
# A thread that has given up the baton for good has only the interpreter's own last steps to do.
_LAST_STEPS_S = 1.0
# How soon Ctrl-C and the end of `stall_after_s` are noticed.
_LOOK_S = 0.25


class MainThread:
    """The thread on which a function runs as the first actor, so that it works inside a running event loop too.

    returned_at_s: virtual instant at which the function returned. result, error: what came of it.
    """

    def __init__(self, kernel: Kernel, function: Callable[[], Any]) -> None:
        self._kernel, self._function = kernel, function
        self.returned_at_s: float | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="main", daemon=True)

    def _run(self) -> None:
        try:
            self.result = self._as_actor()
        except BaseException as error:  # noqa: BLE001 - raised again where the run was asked for
            self.error = error

    def _as_actor(self) -> Any:
        kernel = self._kernel
        main = kernel.main = kernel.running = this_thread.actor = Actor(kernel, self.thread)
        become_actor(self.thread, main)
        kernel.actors.append(main)
        try:
            return self._function()
        finally:
            self.returned_at_s = kernel.now_s
            try:
                if kernel.failure is None and kernel.now_s < kernel.limit_at_s:
                    _let_others_run(kernel)
            finally:
                if kernel.abandoned:
                    kernel.retire(main)
                else:
                    _end_the_others(kernel, main)
                this_thread.actor = None
                for thread in kernel.threads:
                    real_join(thread, _LAST_STEPS_S)


def _let_others_run(kernel: Kernel) -> None:
    """Let the other actors go on until none can before the limit."""
    kernel.draining = True
    try:
        kernel.park(None, "the other actors to come to rest")
    finally:
        kernel.draining = False


def _end_the_others(kernel: Kernel, main: Actor) -> None:
    """End what still waits: idle workers, heartbeats, what hangs. Time stands still meanwhile."""
    kernel.ending, kernel.limit_at_s = True, -math.inf
    with _silent_about_the_end():
        for _ in range(_ENDING_ROUNDS):
            if kernel.actors == [main]:
                break
            for actor in kernel.actors:
                if actor is not main:
                    actor.pending_error = SimulationOver()
                    if actor.parked:
                        kernel.make_ready(actor, woken=False)
            _let_others_run(kernel)
        for loop in kernel.loops:
            loop.end()
    if kernel.actors != [main]:
        kernel.abandoned = True
        kernel.end_the_next(main)
        names = ", ".join(actor.name for actor in kernel.actors if actor is not main)
        raise SimulationError(f"{names} caught BaseException and waited on at the run's end; let SimulationOver pass")


@contextlib.contextmanager
def _silent_about_the_end() -> Iterator[None]:
    """Keep pools from logging a traceback for each worker that is ended."""

    def tells_something(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], SimulationOver))

    pools = logging.getLogger("concurrent.futures")
    pools.addFilter(tells_something)
    try:
        yield
    finally:
        pools.removeFilter(tells_something)


def watch(kernel: Kernel, main: MainThread, stall_after_s: float, core: OneCore) -> None:
    """Wait in real time for a run to end; pass Ctrl-C on to it; give it up when it makes no progress.

    core: where its threads are, looked at meanwhile.

    Raises: SimulationStalled, or the error that a run failed with when it does not end of it.
    """
    seen, since = -1, real_monotonic()
    while main.thread.is_alive():
        try:
            real_join(main.thread, min(_LOOK_S, stall_after_s / 2))
        except KeyboardInterrupt as interrupt:
            kernel.interrupt = interrupt
        # The function's own thread too: the kernel lists what was started from it.
        core.look([main.thread, *kernel.threads])
        # After a failure, hand-overs are no progress: the function may be catching everything, for ever.
        if kernel.handovers != seen and kernel.failure is None:
            seen, since = kernel.handovers, real_monotonic()
        elif real_monotonic() - since > stall_after_s and main.thread.is_alive():
            raise _given_up(kernel, stall_after_s)


def _given_up(kernel: Kernel, stall_after_s: float) -> BaseException:
    """Let go of all actors, for good: one of them keeps the baton. The error to raise."""
    kernel.abandoned = True
    running = kernel.running
    for actor in kernel.actors:
        forget_pool_worker(actor.thread)
    if kernel.failure is not None:
        return kernel.failure
    if running is not None:
        running.waits_for, running.wakes_at_s = "something real", None
    name = "nobody" if running is None else running.name
    return SimulationStalled(
        f"at {kernel.now_s:.6f} virtual s {name} did not wait virtually for {stall_after_s:g} real s. Is it a socket, "
        "a lock made before the run, or a long computation? Make it inside the run, use a virtual door, or raise "
        f"stall_after_s.\n{where_everyone_waits(kernel.actors)}"
    )
