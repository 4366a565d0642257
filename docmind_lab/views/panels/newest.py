"""A worker thread that does only the newest requested item, and ends when nothing is left to do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Newest(Generic[Item]):
    """Processes one item at a time, the newest next; items requested in between are never begun.

    do: called with the item in the worker's thread; it reports its own errors, since no caller waits for them.
    name: of the thread, which exists only while there is something to do.
    """

    def __init__(self, do: Callable[[Item], None], name: str) -> None:
        self._do, self._name = do, name
        self._change = threading.Condition()
        self._asked: list[Item] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, item: Item) -> bool:
        """Process this item next, instead of any that waits. Returns False, and drops it, once closed."""
        with self._change:
            if self._closed:
                return False
            self._asked = [item]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
            return True

    @property
    def busy(self) -> bool:
        """Whether an item is being processed or waits."""
        return self._thread is not None

    @property
    def waiting(self) -> bool:
        """Whether a newer item waits for the current one to end."""
        return bool(self._asked)

    def wait(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do; return True, or False after `timeout_s`."""
        limit_at = time.monotonic() + timeout_s
        with self._change:
            return self._change.wait_for(lambda: self._thread is None, max(0.0, limit_at - time.monotonic()))

    def close(self) -> None:
        """Drop the waiting item and accept no more; the thread ends after its current item."""
        with self._change:
            self._closed = True
            self._asked = []

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._asked:
                    self._thread = None
                    self._change.notify_all()
                    return
                item = self._asked.pop()
            try:
                self._do(item)
            except BaseException:
                # A defect, which the interpreter reports; whoever waits for us must not wait for ever.
                with self._change:
                    self._thread = None
                    self._change.notify_all()
                raise
