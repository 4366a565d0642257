"""Spans and metrics of enforced calls in production, under the names that the lab gives to its runs.

    agent = enforce(graph, 20, "E", on_result=CallTelemetry("support"))

Names and numbers only: never a state, a question or a document. `docmind-lab watch` reads the spans. OpenTelemetry
comes with the extra `telemetry`; without a provider of the application's nothing is recorded.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from docmind_lab.alternatives.enforcement.result import Result
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.telemetry_names import (
    CUT_AT,
    ERROR_TYPE,
    GIVEN,
    INSTRUMENT,
    INVOKE_WORKFLOW,
    OPERATION,
    REMAINING_AT_START,
    REQUESTS_CUT,
    RUN_ATTRIBUTES,
    RUN_LABELS,
    THREADS_RUNNING,
    WORKFLOW,
    RunInstruments,
)

try:
    from opentelemetry import metrics, trace
except ImportError as error:
    raise ConfigurationError(
        "OpenTelemetry is not installed: pip install 'docmind_lab[telemetry]', or leave on_result out"
    ) from error

_log = logging.getLogger("docmind_lab.telemetry")
_NANOSECONDS: Final = 1_000_000_000
# Production has no other: virtual time is the lab's.
_CLOCK: Final = "wall"
# What a caller was given, and a graph that waits for a person as it was written to.
_NO_ERROR: Final = (*GIVEN, "interrupted")


class CallTelemetry:
    """Records one span and three metrics of each call: `enforce(on_result=CallTelemetry("support"))`.

    The span stands under the caller's span, from the start of the call to its return. The spans of the requests that
    the graph makes stand beside it, under the same parent. A call whose caller left has the stop reason `caller_left`.
    The metrics are `docmind.runs` (by outcome), `docmind.run.caller_overrun` (seconds; 0 in time) and
    `docmind.work_cut` (requests that were cut or refused, and threads that still ran). An exporter that fails leaves a
    warning in the log `docmind_lab.telemetry`; the call is what it is without it.

    Args:
        workflow: Name of the graph in spans and metrics.
        tracer_provider: Provider of the spans; the application's own when left out.
        meter_provider: Provider of the metrics; the application's own when left out.

    Raises:
        ConfigurationError: The name is empty.
    """

    def __init__(
        self,
        workflow: str,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        if not isinstance(workflow, str) or not workflow.strip():
            raise ConfigurationError(f"workflow must be a name for the graph in spans, not {workflow!r}; try 'support'")
        self.workflow = workflow
        self._tracer = trace.get_tracer(INSTRUMENT, tracer_provider=tracer_provider)
        self._instruments = RunInstruments(meter_provider or metrics.get_meter_provider())

    def __call__(self, result: Result[Any]) -> None:
        """Record a call that has just returned. Never raises.

        Args:
            result: Its result.
        """
        ended_ns = time.time_ns()
        try:
            self._record_span(result, ended_ns)
            self._record_metrics(result)
        except Exception as error:  # noqa: BLE001 - whatever an exporter does, the caller has its answer
            # Its type only: a message may hold an address with a password.
            _log.warning("a call was not recorded (%s)", type(error).__name__)

    def _record_span(self, result: Result[Any], ended_ns: int) -> None:
        span = self._tracer.start_span(
            f"{INVOKE_WORKFLOW} {self.workflow}",
            attributes=self._attributes(result),
            start_time=ended_ns - round(result.elapsed_s * _NANOSECONDS),
        )
        if result.outcome not in _NO_ERROR:
            # Without a description: the message of an error may quote what was asked.
            span.set_status(trace.Status(trace.StatusCode.ERROR))
        span.end(ended_ns)

    def _attributes(self, result: Result[Any]) -> dict[str, Any]:
        values: dict[str, Any] = {
            "alternative": result.alternative,
            "alternative_options": result.alternative_options,
            "clock": _CLOCK,
            "outcome": result.outcome,
            "stop_reason": result.stop_reason,
            "decision_timeout_s": result.limit_s,
            "caller_overrun_s": result.overrun_s,
        }
        attributes = {RUN_ATTRIBUTES[column]: value for column, value in values.items() if value != ""}
        attributes |= {OPERATION: INVOKE_WORKFLOW, WORKFLOW: self.workflow}
        attributes |= {REMAINING_AT_START: result.remaining_at_start_s}
        attributes |= {REQUESTS_CUT: result.requests_cut, THREADS_RUNNING: len(result.still_running)}
        if result.cut_at:
            attributes[CUT_AT] = result.cut_at
        if result.outcome not in _NO_ERROR:
            attributes[ERROR_TYPE] = _error_type(result)
        return attributes

    def _record_metrics(self, result: Result[Any]) -> None:
        labels = dict(zip(RUN_LABELS, (self.workflow, result.alternative, _CLOCK), strict=True))
        self._instruments.runs.add(1, {**labels, "outcome": result.outcome, "stop_reason": result.stop_reason})
        self._instruments.caller_overrun.record(result.overrun_s, labels)
        for work, count in (("request", result.requests_cut), ("thread", len(result.still_running))):
            if count:
                self._instruments.work_cut.add(count, {**labels, "work": work})


def _error_type(result: Result[Any]) -> str:
    """Return what a span calls the error: the exception of a graph that failed, else why the run stopped."""
    if result.outcome == "failed" and result.error is not None:
        return type(result.error).__name__
    return result.stop_reason or result.outcome
