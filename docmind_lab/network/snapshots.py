"""Snapshots of a run's record: its events and attempts as they stood at an instant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from docmind_lab.network.attempts import Attempt


@dataclass(frozen=True)
class RawEvent:
    """An event whose instant is on the run's clock, not yet relative to the run's start."""

    at: float
    event: str
    role: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """What there was to return from an instant on, on the run's clock: an answer or draft, and documents."""

    at: float
    answer: str
    documents: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Snapshot:
    """Everything recorded of a run up to an instant; the tables are made from it.

    threads_left: threads still inside the run's work. open_work: labels of nodes and graphs that had not ended.
    """

    taken_at: float
    attempts: tuple[Attempt, ...]
    events: tuple[RawEvent, ...]
    threads_left: int
    open_work: tuple[str, ...]

    @property
    def last_at(self) -> float:
        """The latest instant in the snapshot."""
        ends = [attempt.ended_at for attempt in self.attempts if attempt.ended_at is not None]
        return max([event.at for event in self.events] + ends)

    def with_events(self, events: Iterable[RawEvent]) -> Snapshot:
        """Return the snapshot with more events."""
        return replace(self, events=(*self.events, *events))

    def until(self, horizon_at: float) -> Snapshot:
        """Return the snapshot as of an earlier instant: without what began later, and without later ends."""
        attempts = (_as_of(attempt, horizon_at) for attempt in self.attempts if attempt.started_at <= horizon_at)
        events = tuple(event for event in self.events if event.at <= horizon_at)
        return replace(self, taken_at=min(self.taken_at, horizon_at), attempts=tuple(attempts), events=events)


def _as_of(attempt: Attempt, horizon_at: float) -> Attempt:
    """Return a copy of the attempt as it stood at an instant."""
    copy = replace(attempt)
    for name in ("acquired_at", "sent_at", "first_byte_at", "first_token_at"):
        if (at := getattr(copy, name)) is not None and at > horizon_at:
            setattr(copy, name, None)
    if copy.ended_at is not None and copy.ended_at > horizon_at:
        copy.ended_at, copy.outcome, copy.error_type, copy.cut_by = None, "open", "", ""
        # When the gap was is not known.
        copy.longest_gap_s = math.nan
    return copy
