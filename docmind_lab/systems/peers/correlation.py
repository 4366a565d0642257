"""A pending call to a peer: its data, the limits of its time, its outcomes, and the store that it is in.

    PENDING ──► COMPLETED    the peer answered first
            ├─► TIMED_OUT    its time ran out first
            ├─► CANCELLED    the parent was cancelled first
            └─► SEND_FAILED  it could not be sent, or the connection broke

A call is pending as long as its entry is in the store. Whoever *claims* the entry, which removes and returns it in one
step, decides what becomes of the call; everyone who comes later finds nothing, and changes nothing.

No pending entry expires by itself: a timeout is a reason to claim an entry, and data that vanished would leave nobody
to tell the parent. Durations are kept, instants are not.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.numbers import require_seconds

PeerOutcome = Literal["completed", "timed_out", "cancelled", "send_failed"]
PEER_OUTCOMES: tuple[PeerOutcome, ...] = get_args(PeerOutcome)


@dataclass(frozen=True)
class CorrelationEntry:
    """A pending call, as the store keeps it.

    sub_task_id: the caller's own name of the call, known before anything is sent. function_call_id: of the model's tool
    call. peer_agent_name: whom to send a cancel to, if it is known. timeout_s: a duration, since clocks of different
    machines agree on nothing else. extensions: how often a sign of life has put the timeout off.
    """

    sub_task_id: str
    function_call_id: str
    peer_agent_name: str
    logical_task_id: str
    invocation_id: str
    timeout_s: float
    extensions: int = 0


@dataclass(frozen=True)
class PeerResult:
    """The result of one call. payload: of a completed one. error: of any other, in words that name what fired."""

    function_call_id: str
    peer: str
    outcome: PeerOutcome
    payload: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


Limit = Literal["peer_timeout", "hard_cap", "deadline"]
LIMITS: tuple[Limit, ...] = ("peer_timeout", "hard_cap", "deadline")


@dataclass(frozen=True)
class PeerTimeouts:
    """Time limits of calls to peers, in seconds.

    timeout_s: without an answer or a sign of life, a call has timed out. hard_cap_s: with signs of life, at the latest.
    cancel_s: how long a cancel request may take. listen_s: how long after its timeout a call's stream is kept open, so
    that a late answer is heard, acknowledged and counted.
    Raises: ConfigurationError naming the field.
    """

    timeout_s: float = 8.0
    hard_cap_s: float = 14.0
    cancel_s: float = 0.25
    listen_s: float = 15.0

    def __post_init__(self) -> None:
        for each in fields(self):
            require_seconds(each.name, getattr(self, each.name))
        if self.hard_cap_s < self.timeout_s:
            raise ConfigurationError(
                f"hard_cap_s {self.hard_cap_s:g} must not be below timeout_s {self.timeout_s:g}; raise it"
            )

    def due(self, since_s: float, left_s: float) -> tuple[float, Limit]:
        """Return after how many seconds from its start a call times out, and by which limit.

        since_s: when it last gave a sign of life, seconds after its start. left_s: what the run's deadline leaves to
        it, counted from its start; inf for all the time there is. Of equal limits the deadline is it, then the cap.
        """
        limits: list[tuple[float, Limit]] = [
            (left_s, "deadline"),
            (self.hard_cap_s, "hard_cap"),
            (since_s + self.timeout_s, "peer_timeout"),
        ]
        return min(limits, key=lambda limit: limit[0])


def describe_limit(limit: Limit, after_s: float) -> str:
    """Describe the limit that fired, in words."""
    named = {
        "peer_timeout": "its own timeout",
        "hard_cap": "the cap on extended timeouts",
        "deadline": "what the run's deadline left to it",
    }
    return f"no answer within {after_s:.3f} s: {named[limit]} was over"


class PendingCalls:
    """The store of pending calls, in the memory of the parent's process; any thread may use it."""

    def __init__(self) -> None:
        self._entries: dict[str, CorrelationEntry] = {}
        self._lock = threading.Lock()

    def register(self, entries: Sequence[CorrelationEntry]) -> None:
        """Add entries, all of them or none. Raises: ConfigurationError if one exists already."""
        added = {entry.sub_task_id: entry for entry in entries}
        with self._lock:
            if known := sorted(added.keys() & self._entries.keys()):
                raise ConfigurationError(f"call {known[0]!r} is pending already; give each call its own name")
            self._entries |= added

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        """Remove an entry and return it; None if it was claimed before."""
        with self._lock:
            return self._entries.pop(sub_task_id, None)

    def extend(self, sub_task_id: str, seen: int) -> bool:
        """Count one more extension of a pending call if it has `seen` of them; return whether it was so."""
        with self._lock:
            entry = self._entries.get(sub_task_id)
            if entry is None or entry.extensions != seen:
                return False
            self._entries[sub_task_id] = replace(entry, extensions=seen + 1)
            return True

    def pending(self) -> tuple[str, ...]:
        """Return the names of the calls that are not claimed, in order."""
        with self._lock:
            return tuple(sorted(self._entries))
