"""One long-lived event loop in its own thread, for async work that sync callers request.

One loop, because async HTTP clients belong to the loop they were first used on. A run in virtual time has one of its
own, which begins in it and ends with it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from docmind_lab.core.users_code import line_at_work
from docmind_lab.virtual_time import VirtualClock, current_clock

Result = TypeVar("Result")

# For what async runs hand to threads. asyncio's own pool has as many as the machine has cores, and a few more: threads
# that a cancelled run has left behind would keep the next runs waiting there.
_MOST_THREADS = 64


class LoopThread:
    """An event loop in a daemon thread. Any thread may `run` coroutines on it, even one that runs its own loop.

    It is never closed: it ends with the process, or with the run of a virtual clock that it was started in, and clients
    that belong to it stay usable until then. A forked process has no thread of its parent, and so a loop of its own.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="docmind-worker"))
        self._thread = threading.Thread(target=self._run_forever, name="docmind-event-loop", daemon=True)
        self._thread.start()

    def _run_forever(self) -> None:
        self._loop.run_forever()

    @property
    def is_alive(self) -> bool:
        """Whether the loop can still run coroutines."""
        return self._thread.is_alive()

    @property
    def line_at_work(self) -> str:
        """The line of the user's own code that the loop's thread is at, such as "my_app.py:17"; empty if at none."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "" if frame is None else line_at_work(frame)

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the caller's context, wait for it in the calling thread, and return its result.

        Raises: RuntimeError when called from the loop's own thread, which would wait for itself.
        """
        return self.submit(coroutine).result()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine and return its future, whose cancellation cancels the task; the caller does not wait.

        Raises: RuntimeError as `run` does.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("the shared event loop cannot wait for itself; await the coroutine instead")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


_shared: LoopThread | None = None
# The thread of a run keeps its LoopThread, and nothing else does once the run is over.
_loops_of_runs: weakref.WeakKeyDictionary[VirtualClock, weakref.ref[LoopThread]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def shared_loop() -> LoopThread:
    """Return the process's loop thread, started at first use; in virtual time, the loop thread of the run."""
    global _shared
    clock = current_clock()
    with _lock:
        if clock is not None:
            return _loop_of_run(clock)
        if _shared is None or not _shared.is_alive:
            _shared = LoopThread()
        return _shared


# Never collected: a loop that is closed in a forked process would change the epoll that it shares with its parent's,
# which then hears of nothing any more.
_loops_of_parents: list[LoopThread] = []


def _leave_to_the_parent() -> None:
    """Forget the loop of the process that this one was forked from, and a lock that one of its threads may have had."""
    global _shared, _lock
    _lock = threading.Lock()
    if _shared is not None:
        _loops_of_parents.append(_shared)
        _shared = None


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _loop_of_run(clock: VirtualClock) -> LoopThread:
    reference = _loops_of_runs.get(clock)
    loop = None if reference is None else reference()
    if loop is None or not loop.is_alive:
        loop = LoopThread()
        _loops_of_runs[clock] = weakref.ref(loop)
    return loop
