"""Events and Prometheus metrics of a ladder.

    metrics = LadderMetrics(CollectorRegistry())
    graph = build_staged_graph(model, options, metrics=metrics)
    generate_latest(metrics.registry)                     # what a scrape would get

Events go to the recorder of a run, if there is one; there are no metrics unless a ladder is given some, and they are
never put into the process's default registry. Events carry names and numbers. A write is named by a digest of its key,
since an entity's name is text of a document.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from docmind_lab.core.clock import Clock
from docmind_lab.core.wall_clock import WALL
from docmind_lab.network.recorder import current_recorder
from docmind_lab.workloads.staged.calls import Write

# From a local rung, which takes milliseconds, to an agent that is cut after minutes.
_SECONDS = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)


@dataclass
class LadderMetrics:
    """Metrics of every ladder that is given them.

    docmind_staged_stage_seconds{stage,outcome}          how long a rung took, by how it ended
    docmind_staged_fallbacks_total{from_stage,to_stage}  how often one rung had to stand in for another
    docmind_staged_relation_retries_total{outcome}       relations written again at the end: confirmed, unconfirmed
    docmind_staged_writes_total{origin,kind,outcome}     confirmed, unconfirmed
    docmind_staged_chunks_total{outcome}                 chunks by the rung that wrote first, skipped_empty, failed
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        def counter(name: str, meaning: str, labels: tuple[str, ...]) -> Counter:
            return Counter(f"docmind_staged_{name}", meaning, labels, registry=self.registry)

        self.stage_seconds = Histogram(
            "docmind_staged_stage_seconds",
            "Duration of a rung of the ladder.",
            ("stage", "outcome"),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.fallbacks = counter("fallbacks", "One rung stood in for another.", ("from_stage", "to_stage"))
        self.relation_retries = counter("relation_retries", "Relations written again at the end.", ("outcome",))
        self.writes = counter("writes", "Writes that were tried.", ("origin", "kind", "outcome"))
        self.chunks = counter("chunks", "Chunks that were worked on.", ("outcome",))


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
class StageReporter:
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
