"""Analytics: best-effort and off the critical path. A sink that fails or lags changes nothing for the user."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

# A sink that is this far behind will not catch up; what comes on top is dropped and counted.
_MOST_WAITING = 1_000


@dataclass(frozen=True)
class AnalyticsEvent:
    """One query, in names and numbers: no question, no answer, no document.

    outcome, stop_reason: as in the tables. processing_time_s: from the call to the response.
    """

    thread_id: str
    alternative: str
    outcome: str
    stop_reason: str
    processing_time_s: float
    decision_timeout_s: float
    documents: int
    llm_calls: int
    fallback_used: bool


Sink = Callable[[AnalyticsEvent], object]


class Analytics:
    """Hands events to a sink in a thread of its own. failures: events the sink raised for, and events dropped."""

    def __init__(self, sink: Sink | None) -> None:
        self.failures = 0
        self._sink = sink
        self._waiting: queue.Queue[AnalyticsEvent | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None

    def report(self, event: AnalyticsEvent) -> None:
        """Take the event and return at once."""
        if self._sink is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, args=(self._sink,), daemon=True)
            self._thread.name = "docmind-analytics"
            self._thread.start()
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.failures += 1

    def close(self, patience_s: float = 1.0) -> None:
        """Let the sink work off what is waiting, for a while."""
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(patience_s)
            self._thread = None

    def _deliver(self, sink: Sink) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                sink(event)
            except Exception:  # noqa: BLE001 - whatever a sink does wrong, it is counted and concerns nobody else
                self.failures += 1
