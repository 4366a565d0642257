"""An observer of calls that keeps their attempts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from docmind_lab.network import Attempt, AttemptObserver, LogicalCall


@dataclass
class Watcher(AttemptObserver):
    """Keeps what it is told."""

    started: list[Attempt] = field(default_factory=list)
    ended: list[Attempt] = field(default_factory=list)

    def attempt_started(self, attempt: Attempt) -> None:
        self.started.append(attempt)

    def attempt_ended(self, attempt: Attempt) -> None:
        self.ended.append(attempt)

    def call(self, **changes: Any) -> LogicalCall:
        """A call of the router that it observes; `changes` replace fields."""
        values = {"run_id": "r1", "call_id": "llm/router/1.0.1", "role": "router", "step": "1.0.1", "kind": "llm"}
        return LogicalCall(**(values | {"seed": 7, "observer": self} | changes))

    @property
    def outcomes(self) -> list[str]:
        assert all(attempt in self.started for attempt in self.ended)
        return [attempt.outcome for attempt in self.started]
