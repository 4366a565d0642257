"""How long a call to a peer may take, and which of several limits ends it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from docmind_lab.core.errors import ConfigurationError

Limit = Literal["peer_timeout", "hard_cap", "deadline"]
LIMITS: tuple[Limit, ...] = ("peer_timeout", "hard_cap", "deadline")


@dataclass(frozen=True)
class PeerTimeouts:
    """Durations, in seconds.

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
        """Seconds after the start of a call at which it times out, and which limit that is.

        since_s: when it last gave a sign of life, seconds after its start. left_s: what the run's deadline leaves to
        it, counted from its start; inf for all the time there is. Of equal limits the deadline is it, then the cap.
        """
        limits: list[tuple[float, Limit]] = [
            (left_s, "deadline"),
            (self.hard_cap_s, "hard_cap"),
            (since_s + self.timeout_s, "peer_timeout"),
        ]
        return min(limits, key=lambda limit: limit[0])


def words_of(limit: Limit, after_s: float) -> str:
    """What fired, in words for whoever reads the result."""
    named = {
        "peer_timeout": "its own timeout",
        "hard_cap": "the cap on extended timeouts",
        "deadline": "what the run's deadline left to it",
    }
    return f"no answer within {after_s:.3f} s: {named[limit]} was over"
