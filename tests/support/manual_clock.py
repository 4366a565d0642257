"""A clock for tests that do not wait."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ManualClock:
    """A clock that moves only when told to, or when someone sleeps on it."""

    now_s: float = 1000.0
    name: str = "manual"

    def now(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
