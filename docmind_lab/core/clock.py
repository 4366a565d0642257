"""Clocks: their protocol, the wall clock, and the CPU time that virtual time charges."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal, Protocol

ClockName = Literal["virtual", "wall"]
CLOCKS: tuple[ClockName, ...] = ("virtual", "wall")


class Clock(Protocol):
    """A clock: tells the time and waits.

    name: "wall" or "virtual", as the tables say it.
    """

    @property
    def name(self) -> str:
        """The name of the clock in the `clock` column of the tables."""
        ...

    def now(self) -> float:
        """Return monotonic seconds; only differences mean anything. All instants of one run come from one clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of this clock's time have passed."""
        ...


@dataclass(frozen=True)
class WallClock:
    """Real time. `time.monotonic` is looked up at each call, so that replacing it affects every caller.

    On Linux and macOS the monotonic clock is one for all processes of the machine. So instants in a service's own log
    can be set beside those of the client. name: the level of the `clock` factor in the tables.
    """

    name: str = "wall"

    def now(self) -> float:
        """Return the seconds of the system's monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait until `seconds` of real time have passed."""
        time.sleep(seconds)


WALL = WallClock()
