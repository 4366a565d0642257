"""Deliver finished queries to telemetry in a thread of its own, off the critical path.

A sink may fail or lag, and nothing changes for the user.
"""

from __future__ import annotations

import contextlib
import math
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from docmind_lab.alternatives.base import Alternative, Outcome
from docmind_lab.core.settings import Settings
from docmind_lab.network.recorder import Recorder

# A sink that is this far behind will not catch up; what comes on top is dropped and counted.
_MOST_WAITING = 1_000


@dataclass
class CloseTime:
    """When a coordinator began to close, on the system's monotonic clock; inf while it is open."""

    at: float = math.inf


@dataclass(frozen=True)
class EndedQuery:
    """A query that has ended. recorder: of its run, in which work left behind may still go on.

    outcome: as the caller had it; the answer in it is never exported. closing: of its coordinator, which
    ends what is still at work.
    """

    recorder: Recorder
    alternative: Alternative
    outcome: Outcome
    closing: CloseTime = field(default_factory=CloseTime)


Sink = Callable[[EndedQuery], object]


class Delivery:
    """Delivers queries to a sink in a thread of its own. failures: those that were dropped or made the sink raise."""

    def __init__(self, sink: Sink | None) -> None:
        self.failures = 0
        self._sink = sink
        self._waiting: queue.Queue[EndedQuery | None] = queue.Queue(_MOST_WAITING)
        self._thread: threading.Thread | None = None
        # Queries end in several threads at once; the sink has one, or it would take two items at a time.
        self._starting = threading.Lock()

    def report(self, query: EndedQuery) -> None:
        """Queue the query for the sink and return at once."""
        if self._sink is None:
            return
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._deliver, args=(self._sink,), name="docmind-telemetry", daemon=True
                )
                self._thread.start()
        try:
            self._waiting.put_nowait(query)
        except queue.Full:
            self.failures += 1

    def close(self, patience_s: float = 1.0) -> bool:
        """Give the sink some time to process what is queued; return whether it has finished."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is None:
            return True
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        thread.join(patience_s)
        return not thread.is_alive()

    def _deliver(self, sink: Sink) -> None:
        while (query := self._waiting.get()) is not None:
            try:
                sink(query)
            except Exception:  # noqa: BLE001 - any failure of a sink is counted, and affects no query
                self.failures += 1


class QueryTelemetry(Protocol):
    """Exports spans of queries: `docmind_lab.telemetry.Telemetry`."""

    @property
    def patience_s(self) -> float:
        """Seconds that `close` waits for the export."""
        ...

    def check(self, settings: Settings) -> None:
        """Return if queries can be exported under these settings. Raises: ConfigurationError."""

    def query_sink(self, settings: Settings, corpus: str) -> Sink:
        """Return a function that exports one query after the other, in a thread of its own."""
        ...
