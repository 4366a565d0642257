"""Replacements for the methods of `threading.Thread` and for the futures of pools, in virtual time."""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import queue
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

from docmind_lab.virtual_time.kernel import (
    Actor,
    calling_actor,
    current_actor,
    outside_simulation,
    this_thread,
)
from docmind_lab.virtual_time.locks import SimulatedSimpleQueue
from docmind_lab.virtual_time.real_primitives import (
    RealSimpleQueue,
    SimulationOver,
    real_is_alive,
    real_join,
    real_start,
)
from docmind_lab.virtual_time.reports import place_of_code

_ACTOR = "_docmind_lab_actor"


def actor_of(thread: threading.Thread) -> Actor | None:
    """Return the actor of a thread; None for a thread that no actor started."""
    return getattr(thread, _ACTOR, None)


def become_actor(thread: threading.Thread, actor: Actor) -> None:
    """Register a thread as an actor."""
    setattr(thread, _ACTOR, actor)


def start(actor: Actor, thread: threading.Thread) -> None:
    """Start a thread as an actor of the caller's simulation. It is ready at once and runs when its turn comes."""
    if thread.ident is not None:
        real_start(thread)  # raises: a thread is started once
        return
    kernel = actor.kernel
    started, original_run = Actor(kernel, thread), thread.run
    caller = sys._getframe(2)
    if caller.f_globals.get("__name__") == concurrent.futures.thread.__name__:
        started.ends_count = False
        kernel.pools[caller.f_locals["self"]] = None
        _wait_virtually(caller.f_locals["self"], thread)
    else:
        started.started_at = place_of_code(caller)

    def run() -> None:
        started.gate.acquire()
        this_thread.actor = started
        try:
            if started.pending_error is None:
                original_run()
        except SimulationOver:
            pass
        except BaseException:
            # What an actor raises while it is being ended, such as the release of a lock it never got, is no news.
            if not (kernel.ending or kernel.abandoned or kernel.failure is not None):
                raise
        finally:
            kernel.retire(started)

    thread.run = run  # type: ignore[method-assign]
    become_actor(thread, started)
    # A simulation that was given up must not keep the interpreter from ending.
    thread.daemon = True
    # The interpreter's own handshake with a new thread is real.
    with outside_simulation():
        real_start(thread)
    kernel.admit(started)


def _wait_virtually(pool: ThreadPoolExecutor, worker: threading.Thread) -> None:
    """Give a pool that was made outside every run a queue with virtual waiting, before its worker reads it."""
    any_pool, starting = cast(Any, pool), cast(Any, worker)
    old = any_pool._work_queue
    if type(old) is not RealSimpleQueue:
        return
    simulated = any_pool._work_queue = SimulatedSimpleQueue()
    with contextlib.suppress(queue.Empty):
        while True:
            simulated.put(old.get_nowait())
    starting._args = tuple(simulated if argument is old else argument for argument in starting._args)


def join(actor: Actor, thread: threading.Thread, timeout: float | None = None) -> None:
    """Wait in virtual time for a thread to end."""
    target = actor_of(thread)
    if target is not None and target is not actor and not target.finished:
        actor.kernel.wait(target.joiners, timeout, f"the end of {thread.name}")
        if not target.finished:
            return
    real_join(thread, timeout)


def is_alive(actor: Actor, thread: threading.Thread) -> bool:
    """Whether a thread has not yet ended in virtual time."""
    target = actor_of(thread)
    return real_is_alive(thread) and not (target is not None and target.finished)


class SimulatedFuture(Future[Any]):
    """A pool's future whose hash is the same in every run, so that sets of futures have one order."""

    def __new__(cls) -> Any:  # noqa: D102 - what comes back is the first line of the class
        return Future() if current_actor() is None else object.__new__(cls)

    def __init__(self) -> None:
        super().__init__()
        self._kernel = calling_actor().kernel
        self._number = next(self._kernel.numbers)

    def __hash__(self) -> int:
        return self._number

    def set_result(self, result: Any) -> None:
        """Set the result as `Future.set_result` does, and count the end of the job as an effect."""
        self._kernel.note_effect()
        super().set_result(result)

    def set_exception(self, exception: BaseException | None) -> None:
        """Set the exception as `Future.set_exception` does, and count the job's end as an effect."""
        self._kernel.note_effect()
        super().set_exception(exception)


def cancel_waiting_jobs(pool: ThreadPoolExecutor) -> None:
    """Cancel a pool's jobs that have not begun: they belong to the run that ends."""
    jobs: Any = pool._work_queue
    with contextlib.suppress(queue.Empty):
        while True:
            job = jobs.get_nowait()
            if job is not None:
                job.future.cancel()


def renew_pool(pool: ThreadPoolExecutor) -> None:
    """Let a pool whose workers ended with their run start new ones when it is used again."""
    any_pool: Any = pool
    any_pool._threads = {thread for thread in any_pool._threads if actor_of(thread) is None}
    any_pool._idle_semaphore._value = 0


def forget_pool_worker(thread: threading.Thread) -> None:
    """Keep the interpreter from waiting at exit for a worker that will never end."""
    concurrent.futures.thread._threads_queues.pop(thread, None)  # type: ignore[attr-defined]
