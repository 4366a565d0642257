"""Names of spans and attributes, and the instruments of metrics: the same for runs of the lab and in production.

Names of OpenTelemetry's semantic conventions are used where there is one. For how an agent's work ended there is none
(opentelemetry-semantic-conventions 0.66b2), so `docmind.outcome` and `docmind.stop_reason` say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram, MeterProvider

INSTRUMENT: Final = "docmind_lab"
"""Name of the tracer and of the meter."""

OPERATION: Final = "gen_ai.operation.name"
WORKFLOW: Final = "gen_ai.workflow.name"
ERROR_TYPE: Final = "error.type"
INVOKE_WORKFLOW: Final = "invoke_workflow"
"""The operation of a run's span, and the first word of its name."""

REMAINING_AT_START: Final = "docmind.deadline.remaining_at_start_s"

RUN_ATTRIBUTES: Final[Mapping[str, str]] = {
    "study_id": "docmind.study.id",
    "run_id": "docmind.run.id",
    "alternative": "docmind.alternative",
    "alternative_options": "docmind.alternative.options",
    "seed": "docmind.seed",
    "question_id": "docmind.question.id",
    "fault": "docmind.fault",
    "latency_profile": "docmind.latency_profile",
    "clock": "docmind.clock",
    "outcome": "docmind.outcome",
    "stop_reason": "docmind.stop_reason",
    "decision_timeout_s": "docmind.deadline.timeout_s",
    "deadline_propagation": "docmind.deadline.propagated",
    "propagation_coverage": "docmind.deadline.coverage",
    "caller_overrun_s": "docmind.deadline.caller_overrun_s",
    "work_overrun_s": "docmind.deadline.work_overrun_s",
    "work_censored": "docmind.deadline.work_censored",
    "calls_after_deadline": "docmind.deadline.calls_after",
    "busy_after_deadline_s": "docmind.deadline.busy_after_s",
    "tokens_after_deadline": "docmind.deadline.tokens_after",
    "token_budget": "docmind.budget.tokens",
    "call_budget": "docmind.budget.calls",
    "cost_budget": "docmind.budget.cost",
    "tokens_spent": "docmind.budget.tokens_spent",
    "calls_spent": "docmind.budget.calls_spent",
    "cost_spent": "docmind.budget.cost_spent",
}
"""Column of the table `runs` → attribute of a run's span."""

CUT_AT: Final = "docmind.deadline.cut_at"
REQUESTS_CUT: Final = "docmind.deadline.requests_cut"
THREADS_RUNNING: Final = "docmind.deadline.threads_running"
"""Attributes of a call in production only: the nodes that were at work at the cut, and what was cut or went on."""

GIVEN: Final = ("answered", "partial")
"""Outcomes that count as no error of a run's span: its caller was given something, whole or not."""

RUNS: Final = "docmind.runs"
CALLER_OVERRUN: Final = "docmind.run.caller_overrun"
WORK_CUT: Final = "docmind.work_cut"
"""Metrics by their names in OpenTelemetry; Prometheus has them with underscores and a unit or `_total`."""

RUN_LABELS: Final = ("workload", "alternative", "clock")
"""Labels of every metric of a run."""

# From what a timer is late by to an enforcer that waits for a client's own timeouts. 0 is a bucket: not late at all.
OVERRUN_BUCKETS_S: Final = (0.0, 0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)

# From a search, or a rung that needs no model, to an agent that is cut after minutes.
_SECONDS: Final = (0.001, 0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)


class RunInstruments:
    """The instruments of runs on an OpenTelemetry meter; docs/telemetry.md lists their labels.

    Args:
        provider: Provider of the meter: one that the lab is given, or the application's own in production.
    """

    def __init__(self, provider: MeterProvider) -> None:
        meter = provider.get_meter(INSTRUMENT)

        def histogram(name: str, meaning: str, buckets_s: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(name, "s", meaning, explicit_bucket_boundaries_advisory=buckets_s)

        def counter(name: str, unit: str, meaning: str) -> Counter:
            return meter.create_counter(name, f"{{{unit}}}", meaning)

        self.runs = counter(RUNS, "run", "Runs that ended.")
        self.caller_overrun = histogram(CALLER_OVERRUN, "How late the caller returned.", OVERRUN_BUCKETS_S)
        self.work_cut = counter(
            WORK_CUT, "item", "Requests that were cut or refused, and threads that still ran at the return."
        )
        self.work_overrun = histogram(
            "docmind.run.work_overrun", "How long work went on after the deadline.", OVERRUN_BUCKETS_S
        )
        self.overspent = counter("docmind.runs_overspent", "run", "Runs that passed a second budget.")
        self.calls = counter("docmind.calls", "call", "Requests of clients.")
        self.call_duration = histogram("docmind.call", "How long a request took.", _SECONDS)
        self.tokens = counter("docmind.tokens", "token", "Tokens as responses count them.")
        self.stage_duration = histogram("docmind.stage", "How long a rung of the staged ladder took.", _SECONDS)
        self.fallbacks = counter("docmind.fallbacks", "fallback", "One rung stood in for another.")
        self.relation_retries = counter("docmind.relation_retries", "retry", "Relations written again at the end.")
