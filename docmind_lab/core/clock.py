"""The protocol of a clock, and the names of those there are."""

from __future__ import annotations

from typing import Literal, Protocol

ClockName = Literal["virtual", "wall"]
CLOCKS: tuple[ClockName, ...] = ("virtual", "wall")


class Clock(Protocol):
    """Where code gets the time from, and how it waits.

    name: "wall" or "virtual", as the tables say it.
    """

    @property
    def name(self) -> str:
        """The level of the `clock` factor in the tables."""
        ...

    def now(self) -> float:
        """Monotonic seconds; only differences mean anything. All instants of one run come from one clock."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after `seconds` of this clock's time."""
        ...
