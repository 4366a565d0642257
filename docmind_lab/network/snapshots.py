"""What was recorded of a run up to an instant: events and attempts as they stood then."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from docmind_lab.network.attempts import Attempt


@dataclass(frozen=True)
class RawEvent:
    """An event before its instant is made relative to the run's start."""

    at: float
    event: str
    role: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """Everything recorded up to an instant: what the tables are made of.

    threads_left: threads still inside the run's work. open_work: labels of nodes and graphs that had not ended.
    """

    taken_at: float
    attempts: tuple[Attempt, ...]
    events: tuple[RawEvent, ...]
    threads_left: int
    open_work: tuple[str, ...]

    @property
    def last_at(self) -> float:
        """The latest instant in it."""
        ends = [attempt.ended_at for attempt in self.attempts if attempt.ended_at is not None]
        return max([event.at for event in self.events] + ends)

    def until(self, horizon_at: float) -> Snapshot:
        """What had been recorded by an instant: later events and requests are left out, later ends had not come yet."""
        attempts = (_until(attempt, horizon_at) for attempt in self.attempts if attempt.started_at <= horizon_at)
        events = tuple(event for event in self.events if event.at <= horizon_at)
        return replace(self, taken_at=min(self.taken_at, horizon_at), attempts=tuple(attempts), events=events)


def copied(attempt: Attempt) -> Attempt:
    """The attempt as it stands; what becomes of it later does not show."""
    return Attempt(**vars(attempt))


def _until(attempt: Attempt, horizon_at: float) -> Attempt:
    """The attempt as it stood at an instant."""
    made = copied(attempt)
    for name in ("acquired_at", "sent_at", "first_byte_at"):
        if (at := getattr(made, name)) is not None and at > horizon_at:
            setattr(made, name, None)
    if made.ended_at is not None and made.ended_at > horizon_at:
        made.ended_at, made.outcome, made.error_type = None, "open", ""
    return made
