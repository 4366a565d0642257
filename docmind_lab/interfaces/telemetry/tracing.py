"""Hands spans of measured runs to an exporter of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from docmind_lab.core.errors import ServiceError
from docmind_lab.core.telemetry_names import INSTRUMENT
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.telemetry.spans import record_run
from docmind_lab.network.langsmith_tracing import direct_session

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

# The default of OTEL_BSP_MAX_EXPORT_BATCH_SIZE: what a collector expects in one request.
_SPANS_AT_ONCE = 512


def otlp_exporter() -> SpanExporter:
    """Return the OTLP exporter over HTTP, as OTEL_EXPORTER_OTLP_* variables configure it.

    It sends to the collector that they name and to no other host: proxies of the environment are not used, and a
    redirect counts as a failure.
    """
    # Function-level: an optional extra.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    return OTLPSpanExporter(session=direct_session())


def send_spans(measured: Sequence[MeasuredRun], manifest: Mapping[str, Any], exporter: SpanExporter) -> int:
    """Send the spans of runs, each run as its own trace; return how many were sent.

    Raises: ServiceError when the exporter does not take all of them; and any error of the exporter.
    """
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - an optional extra

    spans, taken = finished_spans(measured, manifest), 0
    for start in range(0, len(spans), _SPANS_AT_ONCE):
        batch = spans[start : start + _SPANS_AT_ONCE]
        if exporter.export(batch) is SpanExportResult.SUCCESS:
            taken += len(batch)
    if taken < len(spans):
        raise ServiceError(f"the exporter took {taken} of {len(spans)} spans; its own log says why")
    return taken


def finished_spans(measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> list[ReadableSpan]:
    """Return the spans of runs, calls before their run. Resource and sampler follow the OTEL_* variables."""
    # Function-level: an optional extra.
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: PLC0415

    resource, ended = Resource.create(), InMemorySpanExporter()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "docmind_lab"}))
    # Nothing to do at exit: the spans are sent here or not at all.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    # It hands on what a sampler takes, and nothing else.
    provider.add_span_processor(SimpleSpanProcessor(ended))
    tracer = provider.get_tracer(INSTRUMENT)
    for run in measured:
        record_run(tracer, run, manifest)
    return list(ended.get_finished_spans())
