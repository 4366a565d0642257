"""Hands spans of measured runs to an exporter of OpenTelemetry."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.core.telemetry_names import INSTRUMENT
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.telemetry.spans import record_run
from docmind_lab.network.langsmith_tracing import direct_session

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
# The default of OTEL_BSP_MAX_EXPORT_BATCH_SIZE: what a collector expects in one request.
_SPANS_AT_ONCE = 512


def require_opentelemetry() -> None:
    """Require OpenTelemetry's SDK. Raises: ConfigurationError with the remedy."""
    try:
        importlib.import_module("opentelemetry.sdk.trace")
    except ImportError as error:
        raise ConfigurationError(
            "OpenTelemetry is not installed: pip install 'docmind_lab[telemetry]', or leave spans off"
        ) from error


def require_otlp(settings: Settings) -> None:
    """Require that spans can be sent by OTLP to the address that the environment names.

    Raises: ConfigurationError without the exporter, EndpointRefused for an address that the settings do not admit.
    """
    require_opentelemetry()
    try:
        importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise ConfigurationError(
            "the OTLP exporter is not installed: pip install 'docmind_lab[telemetry]', or leave spans off"
        ) from error
    for name in _ENDPOINTS:
        if url := os.environ.get(name):
            settings.admit(url, name=name)
            return  # the first that is set is the one that is used


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
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider  # noqa: PLC0415

    ended: list[ReadableSpan] = []

    class SampledSpans(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            # What a sampler leaves out must not be sent, though it may be recorded.
            if span.context is not None and span.context.trace_flags.sampled:
                ended.append(span)

    resource = Resource.create({})
    if not _has_service_name():
        resource = resource.merge(Resource({"service.name": "docmind_lab"}))
    # Nothing to do at exit: the spans are sent here or not at all.
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(SampledSpans())
    tracer = provider.get_tracer(INSTRUMENT)
    for run in measured:
        record_run(tracer, run, manifest)
    return ended


def _has_service_name() -> bool:
    named = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return "OTEL_SERVICE_NAME" in os.environ or "service.name=" in named
