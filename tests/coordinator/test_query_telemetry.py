"""Queries in spans and metrics, as those of enforced calls: after the response, not in its way, and without text."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.docmind.coordinator import MultiAgentCoordinator

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from span_exporters import Hanging

from docmind_lab.alternatives.enforcement.call_telemetry import CallTelemetry

CANARY = "zephyrquark"
QUESTION = f"What does a hard timeout leave running, {CANARY}?"
Made = Callable[..., MultiAgentCoordinator]


def recording(processor: SimpleSpanProcessor | BatchSpanProcessor) -> CallTelemetry:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return CallTelemetry("docmind", tracer_provider=provider, meter_provider=MeterProvider(shutdown_on_exit=False))


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(exporter: InMemorySpanExporter) -> CallTelemetry:
    return recording(SimpleSpanProcessor(exporter))


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def test_a_query_is_a_span_of_its_time_without_its_text(
    coordinator: Made, telemetry: CallTelemetry, exporter: InMemorySpanExporter
) -> None:
    response = coordinator(on_result=telemetry).process_query(QUESTION, thread_id=CANARY)
    span = only(exporter)
    attributes = span.attributes or {}
    assert span.name == "invoke_workflow docmind"
    assert attributes["docmind.outcome"] == response.metadata["outcome"] == "answered"
    assert attributes["docmind.alternative"] == "cooperative"
    assert attributes["docmind.deadline.timeout_s"] == 20.0
    assert (attributes["docmind.deadline.requests_cut"], attributes["docmind.deadline.threads_running"]) == (0, 0)
    assert span.start_time is not None
    assert span.end_time is not None
    assert (span.end_time - span.start_time) / 1e9 == pytest.approx(response.processing_time, abs=1e-6)
    assert CANARY not in span.to_json()


@pytest.mark.parametrize(
    ("alternative", "cut", "threads"),
    [pytest.param("A", 1, 0, id="A cuts the request"), pytest.param("B", 0, 1, id="B leaves its thread")],
)
def test_a_query_that_its_budget_cuts_says_what_was_cut_and_what_goes_on(
    coordinator: Made,
    telemetry: CallTelemetry,
    exporter: InMemorySpanExporter,
    alternative: str,
    cut: int,
    threads: int,
) -> None:
    asked = coordinator("hang:router", timeout_s=0.3, alternative=alternative, on_result=telemetry)
    response = asked.process_query(QUESTION)
    attributes = only(exporter).attributes or {}
    assert attributes["docmind.outcome"] == response.metadata["outcome"] == "timed_out"
    assert attributes["docmind.stop_reason"] == attributes["error.type"] == response.metadata["cancel_reason"]
    assert attributes["docmind.deadline.caller_overrun_s"] == pytest.approx(response.metadata["overrun_s"])
    assert attributes["docmind.deadline.requests_cut"] == cut
    assert attributes["docmind.deadline.threads_running"] == threads


def test_a_collector_that_hangs_keeps_nobody_waiting(coordinator: Made) -> None:
    """The exporter hangs in the thread of the provider's batches, and the next question is answered as the first."""
    hanging = Hanging()
    try:
        asked = coordinator(on_result=recording(BatchSpanProcessor(hanging, schedule_delay_millis=1)))
        assert asked.process_query(QUESTION).metadata["outcome"] == "answered"
        assert hanging.begun.wait(30.0)
        assert asked.process_query(QUESTION).metadata["outcome"] == "answered"
    finally:
        hanging.released.set()


def test_what_on_result_raises_changes_no_answer_and_is_a_warning_without_its_message(
    coordinator: Made, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(result: object) -> None:
        raise RuntimeError("http://user:secret@collector")

    with caplog.at_level(logging.WARNING):
        response = coordinator(on_result=fail).process_query(QUESTION)
    assert response.content == coordinator().process_query(QUESTION).content
    assert "on_result failed (RuntimeError)" in caplog.messages


def test_the_old_name_is_refused_with_the_new_one() -> None:
    with pytest.raises(ConfigurationError, match=r"no argument 'telemetry': it takes .*, on_result"):
        MultiAgentCoordinator(telemetry=None)  # type: ignore[call-arg]
