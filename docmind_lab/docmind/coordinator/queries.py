"""A query that was answered, for who tells of it: what was recorded and how it ended, without what was said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from docmind_lab.alternatives.base import Alternative, Outcome
from docmind_lab.core.settings import Settings
from docmind_lab.network.recorder import Recorder


@dataclass
class Closing:
    """When a coordinator began to close, an instant of the system's monotonic clock; inf while it is open."""

    at: float = math.inf


@dataclass(frozen=True)
class EndedQuery:
    """One query. recorder: of its run, in which what the query has left behind may still be at work.

    outcome: as the caller had it, which has the answer too; nobody tells of that. closing: of its coordinator, which
    ends what is still at work.
    """

    recorder: Recorder
    alternative: Alternative
    outcome: Outcome
    closing: Closing = field(default_factory=Closing)


class QueryTelemetry(Protocol):
    """Who tells of queries: `docmind_lab.telemetry.Telemetry`. patience_s: how long it is waited for at the end."""

    @property
    def patience_s(self) -> float:
        """Seconds."""
        ...

    def check(self, settings: Settings) -> None:
        """Return if it can be told."""

    def query_sink(self, settings: Settings, corpus: str) -> Callable[[EndedQuery], object]:
        """Takes one query after the other, in a thread of its own."""
        ...
