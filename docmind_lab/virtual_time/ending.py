"""The start and the end of a run: the function's own thread, leftover threads, and the watch in real time."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import math
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

from docmind_lab.core.errors import SimulationError, SimulationStalled
from docmind_lab.virtual_time.kernel import Actor, Kernel, this_thread
from docmind_lab.virtual_time.one_core import OneCore
from docmind_lab.virtual_time.real_primitives import RealLock, SimulationOver, real_join, real_monotonic
from docmind_lab.virtual_time.real_waits import RealWaits
from docmind_lab.virtual_time.reports import is_exempt, is_handing_over, waiting_for_work, where_everyone_waits
from docmind_lab.virtual_time.threads import become_actor, cancel_waiting_jobs, forget_pool_worker, renew_pool
from docmind_lab.virtual_time.virtual_event_loop import VirtualEventLoop

# An actor that is ended may wait again while it unwinds, and is ended again; one that does so this often never stops.
_ENDING_ROUNDS = 100
# A thread that has given up the baton for good has only the interpreter's own last steps to do.
_LAST_STEPS_S = 1.0
# How often the watch looks: two looks in one real wait are evidence of it.
_LOOK_S = 0.025
# How often it asks whether the core is shared.
_LOOK_AT_CORE_S = 0.25
# What a run that is to end may take to unwind. Unwinding waits for nothing, so this is CPU time on a busy machine.
_UNWINDING_S = 3.0
# The same where somebody waits for a prompt.
_INTERRUPTED_S = 0.5
# What a thread that was told to end by an exception from outside may take, and how often it is told.
_KILLING_S, _KILL_AGAIN_S = 0.5, 0.02
# What raises KeyboardInterrupt in the main thread, where somebody handles it so.
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class MainThread:
    """The thread on which a function runs as the first actor, so that it works inside a running event loop too.

    returned_at_s: virtual instant at which the function returned. result, error: what came of it. has_ended: whether
    the thread has nothing left to do.
    """

    def __init__(self, kernel: Kernel, function: Callable[[], Any]) -> None:
        self._kernel, self._function = kernel, function
        self.returned_at_s: float | None = None
        self.has_returned = self.has_ended = False
        self._result: Any = None
        self.error: BaseException | None = None
        # Not a join: on 3.11 and 3.12 an interrupted join takes the living thread for one that has ended.
        self._ended = RealLock()
        self._ended.acquire()
        self.thread = threading.Thread(target=self._run, name="main", daemon=True)

    def _run(self) -> None:
        try:
            self._result = self._as_actor()
            self.has_returned = True
        except BaseException as error:  # noqa: BLE001 - raised again where the run was asked for
            self.error = error
        finally:
            self.has_ended = True
            self._ended.release()

    def wait_for_end(self, seconds: float) -> bool:
        """Wait in real time for the thread to end; return whether it has."""
        if not self.has_ended and self._ended.acquire(timeout=seconds):
            self._ended.release()
        return self.has_ended

    @property
    def result(self) -> Any:
        """The value that the function returned. Raises: SimulationError if it did not return."""
        if not self.has_returned:
            raise SimulationError("the run ended without a result or an error of its function")
        return self._result

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
                this_thread.actor = kernel.running = None
                for thread in kernel.threads:
                    real_join(thread, _LAST_STEPS_S)


def _let_others_run(kernel: Kernel) -> None:
    """Let the other actors run until none of them can before the limit."""
    kernel.draining = True
    try:
        kernel.park(None, "the other actors to come to rest")
    finally:
        kernel.draining = False


def _end_the_others(kernel: Kernel, main: Actor) -> None:
    """End the actors that still wait, such as idle workers and heartbeats. Time stands still meanwhile."""
    kernel.ending, kernel.limit_at_s = True, -math.inf
    _require_readers(kernel)
    _note_readers(actor for actor in kernel.actors if actor is not main)
    for pool in list(kernel.pools):
        cancel_waiting_jobs(pool)
    with _suppress_end_logs():
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
            assert isinstance(loop, VirtualEventLoop)
            loop.end()
        for pool in list(kernel.pools):
            renew_pool(pool)
    if kernel.actors != [main]:
        kernel.abandoned = True
        kernel.end_the_next(main)
        names = ", ".join(actor.name for actor in kernel.actors if actor is not main)
        raise SimulationError(f"{names} caught BaseException and waited on at the run's end; let SimulationOver pass")


# Queue or event → (how many items it had when its reader ended with a run, the reader, where that was started).
# An event that is set has one.
_unread: weakref.WeakKeyDictionary[Any, tuple[int, str, str]] = weakref.WeakKeyDictionary()
_unread_lock = RealLock()


def _items(work: Any) -> int:
    return int(work.is_set()) if isinstance(work, threading.Event) else int(work.qsize())


def _note_readers(actors: Iterable[Actor]) -> None:
    """Remember the queues and events that ending threads wait for: nobody will heed what a later run does to them."""
    frames = sys._current_frames()
    for actor in actors:
        if actor.started_at:
            work = waiting_for_work(frames.get(actor.thread.ident or 0))
            if work is not None:
                with _unread_lock:
                    _unread[work] = _items(work), actor.name, actor.started_at


def _require_readers(kernel: Kernel) -> None:
    """Fail the run if it has put something into a queue, or set an event, whose reader ended with an earlier run."""
    with _unread_lock:
        noted_work = list(_unread.items())
    for work, (size, name, started_at) in noted_work:
        if _items(work) > size and kernel.failure is None:
            left = "event that this run has set" if isinstance(work, threading.Event) else "queue that this run put to"
            kernel.failure = SimulationError(
                f"the thread {name}, started at {started_at}, ended with the run in virtual time that it was started "
                f"in, and nobody waits for the {left}; start it in each run"
            )
        if _items(work) != size:
            with _unread_lock:
                _unread.pop(work, None)


@contextlib.contextmanager
def _suppress_end_logs() -> Iterator[None]:
    """Keep pools from logging a traceback for each worker that the run's end stops."""

    def tells_something(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], SimulationOver))

    pools = logging.getLogger("concurrent.futures")
    pools.addFilter(tells_something)
    try:
        yield
    finally:
        pools.removeFilter(tells_something)


@contextlib.contextmanager
def end_on_interrupt(kernel: Kernel) -> Iterator[None]:
    """End the run on a signal that raises KeyboardInterrupt, and raise that after the run.

    If it were raised in the middle of the wait for the run, the run would go on beside the code that follows.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread
        return
    before = {number: handler for number in _STOP_SIGNALS if callable(handler := signal.getsignal(number))}

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before[signal.Signals(number)](number, frame)
        except KeyboardInterrupt as interrupt:
            kernel.interrupt = interrupt

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)
        # Whatever else the run ended with: an interrupt that came too late to end it is not lost.
        interrupt, kernel.interrupt = kernel.interrupt, None
        if interrupt is not None:
            raise interrupt


def watch(kernel: Kernel, main: MainThread, stall_after_s: float, core: OneCore) -> None:
    """Start a run's first thread and wait in real time for its end; abandon a run that makes no progress.

    core: where its threads are, looked at meanwhile.

    Raises: SimulationStalled, or the error that a run failed with when it does not end of it. Whatever it raises, the
    run does not go on.
    """
    try:
        main.thread.start()
        _wait_for_end(kernel, main, stall_after_s, core)
        real_join(main.thread, _LAST_STEPS_S)
    except BaseException:
        if not main.has_ended and not kernel.abandoned:
            _give_up(kernel, main)
        raise


def _wait_for_end(kernel: Kernel, main: MainThread, stall_after_s: float, core: OneCore) -> None:
    waits = RealWaits(kernel)
    progress_at = core_seen_at = real_monotonic()
    handovers, asked_at = -1, math.inf
    while not main.wait_for_end(min(_LOOK_S, stall_after_s / 2)):
        now = real_monotonic()
        if now - core_seen_at >= _LOOK_AT_CORE_S:
            # The function's own thread too: the kernel lists what was started from it.
            core.look([main.thread, *kernel.threads])
            core_seen_at = now
        waits.look()
        if kernel.is_to_end:
            asked_at = min(asked_at, now)
        # After a failure, hand-overs are no progress: the function may be catching everything, for ever.
        if kernel.handovers != handovers and kernel.failure is None:
            handovers, progress_at = kernel.handovers, now
        elif now - progress_at > stall_after_s:
            raise _stall_error(kernel, main, stall_after_s)
        if now - asked_at > (_UNWINDING_S if kernel.interrupt is None else _INTERRUPTED_S):
            raise _unwinding_error(kernel, main)


def _stall_error(kernel: Kernel, main: MainThread, stall_after_s: float) -> BaseException:
    """Abandon a run that makes no progress, and return its error."""
    if kernel.failure is not None:
        _give_up(kernel, main)
        return kernel.failure
    running = kernel.running
    if running is not None:
        running.waits_for, running.wakes_at_s = "something real", None
    name = "nobody" if running is None else running.name
    where = "" if running is None else kernel.where(running.thread.ident)
    error = SimulationStalled(
        f"at {kernel.now_s:.6f} virtual s {name}{where} did not wait virtually for {stall_after_s:g} real s. Is it a "
        "socket, a lock made before the run, or a long computation? Make it inside the run, use a virtual door, or "
        f"raise stall_after_s.\n{where_everyone_waits(kernel.actors)}"
    )
    _give_up(kernel, main)
    return error


def _unwinding_error(kernel: Kernel, main: MainThread) -> BaseException:
    """Abandon a run that was to end and has not; return the error it was to end with."""
    error = kernel.take_requested_end() or kernel.failure
    _give_up(kernel, main)
    return error or SimulationError("the run was to end and did not")


def _give_up(kernel: Kernel, main: MainThread) -> None:
    """Abandon all actors: one keeps the baton for good, and is ended where it computes in Python.

    Once it has ended, so does each of the others. What waits in compiled code ends when it comes back from there.
    """
    kernel.abandoned = True
    holder = kernel.running
    for actor in list(kernel.actors):
        forget_pool_worker(actor.thread)
    if holder is None:
        return
    gives_up_at = real_monotonic() + _KILLING_S
    while not main.has_ended and real_monotonic() < gives_up_at:
        frame = sys._current_frames().get(holder.thread.ident or 0)
        # In the kernel it ends by itself, and must not be interrupted while it hands its end on. An import that is cut
        # may leave its lock held for ever.
        if frame is not None and not is_handing_over(frame) and not is_exempt(holder.thread):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(holder.thread.ident or 0), ctypes.py_object(SimulationOver)
            )
        main.wait_for_end(_KILL_AGAIN_S)
