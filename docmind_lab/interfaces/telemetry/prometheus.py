"""Prometheus metrics of runs and calls: their outcomes, how late they were, and what they used.

    metrics = RunMetrics(CollectorRegistry())
    compare(..., telemetry=Telemetry(metrics=metrics))
    generate_latest(metrics.registry)                     # what a scrape would get

They are off by default, and are never put into the process's default registry.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram

from docmind_lab.analysis.tables.records import CallRecord, RunRecord
from docmind_lab.core.telemetry_names import CALLER_OVERRUN, OVERRUN_BUCKETS_S, RUN_LABELS, RUNS
from docmind_lab.experiments.measurement.run import MeasuredRun

# From a search to a reply that hangs until its client gives up.
_CALL_S = (0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_OF_CALL = (*RUN_LABELS, "role", "kind")


@dataclass
class RunMetrics:
    """Prometheus metrics of every run given to `observe`; calls as the client saw them.

    docmind_runs_total{workload,alternative,clock,outcome,stop_reason}
    docmind_run_caller_overrun_seconds{workload,alternative,clock}   late by; 0 in time, until the horizon if unfinished
    docmind_run_work_overrun_seconds{workload,alternative,clock}     what went on; until the horizon if it still did
    docmind_runs_overspent_total{workload,alternative,clock,budget}  runs that passed a second budget
    docmind_calls_total{workload,alternative,clock,role,kind,outcome}
    docmind_call_seconds{workload,alternative,clock,role,kind}       calls that ended
    docmind_tokens_total{workload,alternative,clock,role,kind,direction}

    `clock` keeps seconds of virtual time apart from real ones.

    Args:
        registry: Registry of the metrics; a new one by default.
    """

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        def counter(name: str, meaning: str, labels: tuple[str, ...]) -> Counter:
            return Counter(name, meaning, labels, registry=self.registry)

        def histogram(name: str, meaning: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, meaning, labels, registry=self.registry, buckets=buckets)

        self.runs = counter(_name(RUNS), "Runs that ended.", (*RUN_LABELS, "outcome", "stop_reason"))
        self.caller_overrun = histogram(
            f"{_name(CALLER_OVERRUN)}_seconds", "How late the caller returned.", RUN_LABELS, OVERRUN_BUCKETS_S
        )
        self.work_overrun = histogram(
            "docmind_run_work_overrun_seconds",
            "How long work went on after the deadline.",
            RUN_LABELS,
            OVERRUN_BUCKETS_S,
        )
        self.overspent = counter("docmind_runs_overspent", "Runs that passed a second budget.", (*RUN_LABELS, "budget"))
        self.calls = counter("docmind_calls", "Requests of clients.", (*_OF_CALL, "outcome"))
        self.call_seconds = histogram("docmind_call_seconds", "How long a request took.", _OF_CALL, _CALL_S)
        self.tokens = counter("docmind_tokens", "Tokens as responses count them.", (*_OF_CALL, "direction"))

    def observe(self, measured: MeasuredRun) -> None:
        """Count a run and its calls.

        Args:
            measured: The run.
        """
        self._observe_run(measured.run)
        for call in measured.calls:
            if call.seen_from == "client":
                self._observe_call(call, measured.run.clock)

    def _observe_run(self, run: RunRecord) -> None:
        labels = (run.workload, run.alternative, run.clock)
        self.runs.labels(*labels, run.outcome, run.stop_reason).inc()
        until_horizon_s = run.horizon_s - run.decision_timeout_s
        late_s = until_horizon_s if math.isnan(run.caller_overrun_s) else run.caller_overrun_s
        self.caller_overrun.labels(*labels).observe(late_s)
        self.work_overrun.labels(*labels).observe(run.work_overrun_s)
        overspent = {"tokens": run.tokens_overspent, "calls": run.calls_overspent, "cost": run.cost_overspent}
        for budget, by in overspent.items():
            if by > 0:
                self.overspent.labels(*labels, budget).inc()

    def _observe_call(self, call: CallRecord, clock: str) -> None:
        labels = (call.workload, call.alternative, clock, call.role, call.kind)
        self.calls.labels(*labels, call.outcome).inc()
        if call.outcome != "refused" and not math.isnan(call.latency_s):
            self.call_seconds.labels(*labels).observe(call.latency_s)
        for direction, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
            if not math.isnan(tokens):
                self.tokens.labels(*labels, direction).inc(tokens)


def _name(metric: str) -> str:
    """Return a metric's name as Prometheus writes it, without the unit."""
    return metric.replace(".", "_")
