"""Real time."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class WallClock:
    """`time.monotonic`, looked up at each call, so that a clock put in place later is seen by code built before.

    On Linux and macOS the monotonic clock is one for all processes of the machine, which is what lets the instants
    in a service's own log be set beside the client's.
    """

    name: str = "wall"

    def now(self) -> float:
        """Seconds of the system's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of real time."""
        time.sleep(seconds)


WALL = WallClock()
