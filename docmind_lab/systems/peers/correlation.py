"""A pending call to a peer: its data, the limits of its time, and the outcomes it can have.

    PENDING ──► COMPLETED    the peer answered first
            ├─► TIMED_OUT    its time ran out first
            ├─► CANCELLED    the parent was cancelled first
            └─► SEND_FAILED  it could not be sent, or the connection broke

A call is pending as long as its entry is in the store. Whoever *claims* the entry, which removes and returns it in one
step, decides what becomes of the call; everyone who comes later finds nothing, and changes nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from docmind_lab.core.errors import ConfigurationError

PeerOutcome = Literal["completed", "timed_out", "cancelled", "send_failed"]
PEER_OUTCOMES: tuple[PeerOutcome, ...] = get_args(PeerOutcome)


@dataclass(frozen=True)
class CorrelationEntry:
    """A pending call, as the store keeps it.

    sub_task_id: the caller's own name of the call, known before anything is sent. function_call_id: of the model's tool
    call. original_task_context: names and numbers of what the parent was at. peer_agent_name: whom to send a cancel to;
    an entry without one is processed all the same. timeout_s: a duration, since clocks of different machines agree on
    nothing else. extensions: how often a sign of life has put the timeout off.
    """

    sub_task_id: str
    function_call_id: str
    original_task_context: Mapping[str, Any]
    peer_tool_name: str
    peer_agent_name: str
    logical_task_id: str
    invocation_id: str
    timeout_s: float
    extensions: int = 0

    def as_json(self) -> str:
        """Return the entry as one line of JSON, for stores outside this process."""
        return json.dumps({**asdict(self), "original_task_context": dict(self.original_task_context)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> CorrelationEntry:
        """Parse an entry that `as_json` wrote."""
        return cls(**json.loads(text))


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
            value = getattr(self, each.name)
            if not 0 < value < math.inf:
                raise ConfigurationError(f"{each.name} must be a finite number of seconds above 0, not {value!r}")
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
