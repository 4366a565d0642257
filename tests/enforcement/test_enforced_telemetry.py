"""Spans and metrics of enforced calls, by OpenTelemetry's own SDK (enforce.md 6)."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from held_graphs import Notes, async_graph, two_nodes, upstream_of
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.result import Result
from docmind_lab.core.errors import ConfigurationError

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from docmind_lab.alternatives.enforcement.call_telemetry import CallTelemetry

Stub = Callable[..., StubServer]
CANARY = "zephyrquark"


class Recorded:
    """What CallTelemetry hands to OpenTelemetry's SDK."""

    def __init__(self, *processors: SpanProcessor) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.traces = TracerProvider(shutdown_on_exit=False)
        for processor in (*processors, SimpleSpanProcessor(self.exporter)):
            self.traces.add_span_processor(processor)
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.telemetry = CallTelemetry("support", tracer_provider=self.traces, meter_provider=self.meters)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    @property
    def span(self) -> ReadableSpan:
        (span,) = self.spans
        return span

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: metric.data.data_points
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def counts(self, name: str) -> dict[tuple[Any, ...], Any]:
        labels = ("outcome", "stop_reason") if name == "docmind.runs" else ("work",)
        return {tuple(point.attributes[label] for label in labels): point.value for point in self.metrics()[name]}


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def a_result(**changes: Any) -> Result[Any]:
    values = {"outcome": "answered", "state": {"question": CANARY}, "limit_s": 20.0, "remaining_at_start_s": 20.0}
    return Result(**{**values, "elapsed_s": 1.5, "alternative": "hybrid", **changes})


def graph_with(ask: Callable[[Notes], Notes]) -> Any:
    return two_nodes(lambda state: {"log": ["plan"]}, ask)


def test_a_call_is_one_span_with_the_attributes_of_a_run(recorded: Recorded) -> None:
    agent = dl.enforce(graph_with(lambda state: {"log": [CANARY]}), 20, "E", on_result=recorded.telemetry)
    asyncio.run(agent.ainvoke({"path": CANARY, "log": []}))
    attributes = dict(recorded.span.attributes or {})
    assert attributes.pop("docmind.deadline.remaining_at_start_s") == pytest.approx(20, abs=0.5)
    assert recorded.span.name == "invoke_workflow support"
    assert attributes == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "support",
        "docmind.alternative": "hybrid",
        "docmind.alternative.options": "{}",
        "docmind.clock": "wall",
        "docmind.outcome": "answered",
        "docmind.deadline.timeout_s": 20.0,
        "docmind.deadline.caller_overrun_s": 0.0,
        "docmind.deadline.requests_cut": 0,
        "docmind.deadline.threads_running": 0,
    }
    assert recorded.span.status.status_code is StatusCode.UNSET
    assert CANARY not in recorded.span.to_json()


@pytest.mark.wall
def test_a_call_that_was_cut_says_where_and_what_was_cut(recorded: Recorded, stub: Stub) -> None:
    _, url = upstream_of(stub)
    agent = dl.enforce(async_graph(url), 0.3, "A", on_result=recorded.telemetry)
    began_ns = time.time_ns()
    result = asyncio.run(agent.ainvoke({"path": "/hang", "log": []}))
    ended_ns = time.time_ns()
    span, attributes = recorded.span, recorded.span.attributes or {}
    assert attributes["docmind.outcome"] == "partial"
    assert attributes["docmind.stop_reason"] == result.stop_reason
    assert attributes["docmind.deadline.cut_at"] == ("ask",)
    assert attributes["docmind.deadline.requests_cut"] == result.requests_cut == 1
    assert attributes["docmind.deadline.caller_overrun_s"] == result.overrun_s
    # The span is the call: within what its caller saw, and as long as the result says.
    assert span.start_time is not None
    assert span.end_time is not None
    assert began_ns <= span.start_time < span.end_time <= ended_ns
    assert span.end_time - span.start_time == pytest.approx(result.elapsed_s * 1e9, abs=1000)
    assert recorded.counts("docmind.runs") == {("partial", result.stop_reason): 1}
    assert recorded.counts("docmind.work_cut") == {("request",): 1}


def test_a_graph_that_fails_is_a_span_with_the_type_of_its_error_only(recorded: Recorded) -> None:
    def fail(state: Notes) -> Notes:
        raise LookupError(CANARY)

    agent = dl.enforce(graph_with(fail), 20, "E", on_result=recorded.telemetry)
    with pytest.raises(LookupError):
        asyncio.run(agent.ainvoke({"path": "", "log": []}))
    attributes = recorded.span.attributes or {}
    assert (attributes["docmind.outcome"], attributes["error.type"]) == ("failed", "LookupError")
    assert recorded.span.status.status_code is StatusCode.ERROR
    assert CANARY not in recorded.span.to_json()


def test_a_span_names_the_variant_what_was_left_and_its_callers_span(recorded: Recorded) -> None:
    agent = dl.enforce(graph_with(lambda state: {"log": []}), 20, "A:per_read", on_result=recorded.telemetry)
    with dl.deadline(5), recorded.traces.get_tracer("service").start_as_current_span("POST /ask") as outer:
        asyncio.run(agent.ainvoke({"path": "", "log": []}))
    inner = next(span for span in recorded.spans if span.name.startswith("invoke_workflow"))
    attributes = inner.attributes or {}
    assert attributes["docmind.alternative"] == "cooperative"
    assert attributes["docmind.alternative.options"] == '{"cap": "per_read"}'
    assert attributes["docmind.deadline.remaining_at_start_s"] == pytest.approx(5, abs=0.5)
    assert inner.parent == outer.get_span_context()


@pytest.mark.parametrize(
    ("outcome", "stop_reason", "error_type"),
    [
        ("answered", "", ""),
        ("interrupted", "", ""),
        ("partial", "deadline", ""),
        ("timed_out", "deadline", "deadline"),
        ("timed_out", "caller_left", "caller_left"),
    ],
)
def test_what_the_caller_was_given_is_no_error(
    outcome: Any, stop_reason: str, error_type: str, recorded: Recorded
) -> None:
    recorded.telemetry(a_result(outcome=outcome, stop_reason=stop_reason))
    assert (recorded.span.attributes or {}).get("error.type", "") == error_type
    assert (recorded.span.status.status_code is StatusCode.ERROR) == bool(error_type)


def test_the_three_metrics_count_calls_and_what_was_cut(recorded: Recorded) -> None:
    recorded.telemetry(a_result(overrun_s=0.0))
    recorded.telemetry(
        a_result(outcome="timed_out", stop_reason="deadline", overrun_s=0.03, requests_cut=2, still_running=("ask",))
    )
    made = recorded.metrics()
    assert made.keys() == {"docmind.runs", "docmind.run.caller_overrun", "docmind.work_cut"}
    assert recorded.counts("docmind.runs") == {("answered", ""): 1, ("timed_out", "deadline"): 1}
    assert recorded.counts("docmind.work_cut") == {("request",): 2, ("thread",): 1}
    (overrun,) = made["docmind.run.caller_overrun"]
    assert (overrun.count, overrun.sum, overrun.bucket_counts[:5]) == (2, 0.03, (1, 0, 0, 1, 0))
    assert overrun.attributes == {"workload": "support", "alternative": "hybrid", "clock": "wall"}


def test_a_processor_that_fails_leaves_the_answer_and_a_warning_without_the_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            raise RuntimeError("http://user:secret@collector")

    recorded = Recorded(Failing())
    with caplog.at_level(logging.WARNING, "docmind_lab.telemetry"):
        recorded.telemetry(a_result())
    assert caplog.messages == ["a call was not recorded (RuntimeError)"]


def test_without_a_provider_nothing_is_recorded_and_nothing_fails(caplog: pytest.LogCaptureFixture) -> None:
    CallTelemetry("support")(a_result())
    # A failure would be a warning.
    assert caplog.messages == []


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="workflow must be a name for the graph in spans, not ' '"):
        CallTelemetry(" ")


WITHOUT = """import sys
sys.modules["opentelemetry"] = None
try:
    import docmind_lab.alternatives.enforcement.call_telemetry
except Exception as error:
    print(error)
"""


@pytest.mark.full
def test_without_opentelemetry_the_remedy_is_named() -> None:
    made = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert (
        made.stdout == "OpenTelemetry is not installed: pip install 'docmind_lab[telemetry]', or leave on_result out\n"
    )
