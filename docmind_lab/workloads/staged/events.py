"""Telling what a ladder does: events for the recorder of a run, if there is one, and metrics, if any were given.

Events carry names and numbers. What was written is named by a digest of its key, since an entity's name is text of a
document.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from docmind_lab.core.clock import WALL, Clock
from docmind_lab.network.recorder import current_recorder
from docmind_lab.workloads.staged.calls import Write
from docmind_lab.workloads.staged.metrics import LadderMetrics

STAGES = ("primary", "suggested", "generated", "forced", "finalize")
"""The rungs, from the best to the last, and what is done after any of them."""

EVENTS = {
    "stage_started": "A rung of the ladder began. detail: stage.",
    "graph_write": "A write was tried. detail: stage, origin, kind, confirmed, created, key (a digest), repaired.",
    "calls_dropped": "More calls were asked for than are run at once. detail: stage, dropped.",
    "relation_retried": "An unconfirmed relation was written again. detail: origin, confirmed.",
    "stage_ended": "A rung ended. detail: stage, outcome, confirmed, unconfirmed, skipped, dropped, timeout_s.",
    "fallback": "The next rung takes over. detail: from_stage, to_stage, reason.",
    "dead_letter": "Nothing could be written of a chunk, and it was put aside. detail: error_type.",
}
"""The events that only this workload records."""


def digest(key: str) -> str:
    """What a key is called in events."""
    return hashlib.blake2b(key.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class Telling:
    """Tells of stages. metrics: None for none."""

    metrics: LadderMetrics | None = None
    clock: Clock = WALL

    def event(self, name: str, role: str, /, **detail: Any) -> None:
        """Something happened. role: the stage that it happened in."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.event(name, role, **detail)

    def started(self, stage: str) -> float:
        """A stage begins; the instant."""
        self.event("stage_started", stage, stage=stage)
        return self.clock.now()

    def ended(self, stage: str, begun_at: float, outcome: str, counts: dict[str, Any]) -> None:
        """A stage is over. counts: what is told of its work."""
        self.event("stage_ended", stage, stage=stage, outcome=outcome, **counts)
        if self.metrics is not None:
            self.metrics.stage_seconds.labels(stage, outcome).observe(self.clock.now() - begun_at)

    def fell_back(self, stage: str, to_stage: str, reason: str) -> None:
        """The next rung takes over."""
        self.event("fallback", stage, from_stage=stage, to_stage=to_stage, reason=reason)
        if self.metrics is not None:
            self.metrics.fallbacks.labels(stage, to_stage).inc()

    def wrote(
        self, stage: str, origin: str, write: Write, *, confirmed: bool, created: bool, repaired: bool = False
    ) -> None:
        """A write was tried."""
        detail = {"origin": origin, "kind": write.kind, "confirmed": confirmed, "created": created}
        self.event("graph_write", stage, stage=stage, key=digest(write.key), repaired=repaired, **detail)
        if confirmed and write.counts_as:
            # What was found by the deadline, in the words that every workload has for it.
            topics = [digest(counted) for counted in write.counts_as]
            found = {"ids": [digest(write.key)], "topics": topics, "strategy": origin, "router_used": False}
            self.event("retrieved", stage, **found)
        if self.metrics is not None:
            self.metrics.writes.labels(origin, write.kind, "confirmed" if confirmed else "unconfirmed").inc()

    def retried(self, origin: str, confirmed: bool) -> None:
        """A relation was written again."""
        self.event("relation_retried", "finalize", origin=origin, confirmed=confirmed)
        if self.metrics is not None:
            self.metrics.relation_retries.labels("confirmed" if confirmed else "unconfirmed").inc()

    def finished(self, outcome: str) -> None:
        """A chunk is done with."""
        if self.metrics is not None:
            self.metrics.chunks.labels(outcome).inc()
