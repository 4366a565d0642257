"""Spans as OpenTelemetry's SDK has them: traces, instants, resource, and what is sent over OTLP."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sample_runs import sample_run
from stub_server import StubConnection, StubRequest, StubServer

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import ServiceError
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.views.telemetry.run_spans import finished_spans, otlp_exporter, send_spans

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

# As tests/telemetry/conftest.py has them in the question and in the documents.
QUESTION_CANARY, DOCUMENT_CANARY = "zephyrquark", "marmaladeobelisk"


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)


def spans_of(told: list[MeasuredRun], manifest: dict[str, Any]) -> tuple[Any, ...]:
    exporter = InMemorySpanExporter()
    assert send_spans(told, manifest, exporter) == len(exporter.get_finished_spans())
    return exporter.get_finished_spans()


def test_each_run_is_a_trace_with_its_calls_inside(told: list[MeasuredRun], manifest: dict[str, Any]) -> None:
    spans = spans_of(told, manifest)
    roots = [span for span in spans if span.parent is None]
    assert [root.name for root in roots] == ["invoke_workflow supervisor"] * len(told)
    assert len({root.context.trace_id for root in roots}) == len(told)
    assert all(root.kind is SpanKind.INTERNAL for root in roots)
    for run, root in zip(told, roots, strict=True):
        inside = [span for span in spans if span.parent and span.parent.span_id == root.context.span_id]
        sent = [call for call in run.calls if call.seen_from == "client" and call.outcome != "refused"]
        assert len(inside) == len(sent) > 3
        assert {span.context.trace_id for span in inside} == {root.context.trace_id}
        assert {span.kind for span in inside} == {SpanKind.CLIENT}
        assert {span.name for span in inside} == {"chat docmind-scripted", "retrieval canary"}


def test_a_run_on_the_wall_clock_stands_at_its_own_instant(manifest: dict[str, Any]) -> None:
    run = MeasuredRun(sample_run("cooperative", 0), (), (), Outcome("answered"), time.monotonic() - 5.0)
    (root,) = spans_of([run], manifest)
    # Within a second: both clocks are read one after the other, on a machine that may pause in between.
    assert root.start_time / 1e9 == pytest.approx(time.time() - 5.0, abs=1.0)


def test_no_text_of_a_user_or_a_document_is_in_any_span(told: list[MeasuredRun], manifest: dict[str, Any]) -> None:
    spans = spans_of(told, manifest)
    assert any(span.status.status_code is StatusCode.ERROR for span in spans)
    assert all(span.status.description is None for span in spans)
    everything = "".join(span.to_json() for span in spans)
    assert "gen_ai.request.model" in everything
    for canary in (QUESTION_CANARY, DOCUMENT_CANARY, "secret", "user:"):
        assert canary not in everything


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "docmind_lab"),
        ({"OTEL_SERVICE_NAME": "mine"}, "mine"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=other,deployment.environment.name=test"}, "other"),
    ],
)
def test_the_service_is_named_as_the_environment_says(
    told: list[MeasuredRun],
    manifest: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    name: str,
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert {span.resource.attributes["service.name"] for span in spans_of(told[:1], manifest)} == {name}


@pytest.mark.parametrize(("variable", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_SAMPLER", "always_off")])
def test_the_environment_can_switch_spans_off(
    told: list[MeasuredRun], manifest: dict[str, Any], monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert finished_spans(told, manifest) == []


class Choosy(SpanExporter):
    """Takes the first batch only."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def export(self, spans: Any) -> SpanExportResult:
        self.sizes.append(len(spans))
        return SpanExportResult.SUCCESS if len(self.sizes) == 1 else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        pass


def test_spans_go_out_in_batches_and_those_that_are_not_taken_are_counted(manifest: dict[str, Any]) -> None:
    run = MeasuredRun(sample_run("cooperative", 0), (), (), Outcome("answered"))
    exporter = Choosy()
    with pytest.raises(ServiceError, match="took 512 of 600 spans"):
        send_spans([replace(run) for _ in range(600)], manifest, exporter)
    assert exporter.sizes == [512, 88]


def test_otlp_sends_to_where_the_environment_says_and_no_text_with_it(
    told: list[MeasuredRun],
    manifest: dict[str, Any],
    stub: Callable[..., StubServer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    messages = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")

    def accept(request: StubRequest, connection: StubConnection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    collector = stub(accept)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=lab")
    exporter = otlp_exporter()
    sent = send_spans(told, manifest, exporter)
    exporter.shutdown()
    (request,) = collector.requests
    assert (request.method, request.path, request.headers["x-team"]) == ("POST", "/v1/traces", "lab")
    body = messages.ExportTraceServiceRequest.FromString(request.body)
    received = [span for each in body.resource_spans for scope in each.scope_spans for span in scope.spans]
    assert len(received) == sent
    assert {span.name for span in received} == {
        "invoke_workflow supervisor",
        "chat docmind-scripted",
        "retrieval canary",
    }
    for canary in (QUESTION_CANARY, DOCUMENT_CANARY, "secret"):
        assert canary.encode() not in request.body
