"""Handing things over off the critical path: whoever takes them may fail or lag, and nothing changes for the user."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

# A sink that is this far behind will not catch up; what comes on top is dropped and counted.
_MOST_WAITING = 1_000

Item = TypeVar("Item")


class Delivery(Generic[Item]):
    """Hands items to a sink in a thread of its own. failures: items the sink raised for, and items dropped."""

    def __init__(self, sink: Callable[[Item], object] | None, name: str) -> None:
        self.failures = 0
        self._sink, self._name = sink, name
        self._waiting: queue.Queue[Item | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        # Queries end in several threads at once; the sink has one, or it would take two items at a time.
        self._starting = threading.Lock()

    def report(self, item: Item) -> None:
        """Take the item and return at once."""
        if self._sink is None:
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._deliver, args=(self._sink,), name=self._name, daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            self.failures += 1

    def close(self, patience_s: float = 1.0) -> bool:
        """Let the sink work off what is waiting, for a while; whether it has."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is None:
            return True
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        thread.join(patience_s)
        return not thread.is_alive()

    def _deliver(self, sink: Callable[[Item], object]) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                sink(item)
            except Exception:  # noqa: BLE001 - whatever a sink does wrong, it is counted and concerns nobody else
                self.failures += 1
