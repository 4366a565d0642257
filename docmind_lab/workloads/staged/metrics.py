"""What the rungs of a ladder did, as Prometheus metrics: durations, how often one had to fall back, what was retried.

    metrics = LadderMetrics(CollectorRegistry())
    graph = build_staged_graph(model, options, metrics=metrics)
    generate_latest(metrics.registry)                     # what a scrape would get

There are none unless a ladder is given some, and they are never put into the process's default registry.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram

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
