"""One long-lived event loop in a thread of its own, for everything async that a sync caller asks for.

One loop, because async HTTP clients belong to the loop they were first used on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class LoopThread:
    """An event loop in a daemon thread. Any thread may `run` coroutines on it, also one with a loop of its own.

    It is never closed: it ends with the process, and clients that belong to it stay usable until then.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="docmind-event-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """The coroutine's result, run with the caller's context; the calling thread waits for it.

        Raises: RuntimeError when called from the loop's own thread, which would wait for itself.
        """
        return self.submit(coroutine).result()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """The coroutine's future, for a caller that waits for it only so long. Cancelling it cancels the task.

        Raises: RuntimeError as `run` does.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("the shared event loop cannot wait for itself; await the coroutine instead")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


_shared: LoopThread | None = None
_lock = threading.Lock()


def shared_loop() -> LoopThread:
    """The process's loop thread, started at the first use."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = LoopThread()
        return _shared
