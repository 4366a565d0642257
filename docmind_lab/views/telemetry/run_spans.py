"""A measured run as spans: one for the run, one for each request of a client, by OpenTelemetry's conventions.

    invoke_workflow supervisor                 the run, until its caller returned
        chat docmind-scripted                  a request to the model, retries each by themselves
        retrieval handbook                     a request of a search
        event docmind.deadline, docmind.call.refused

Where a span stands in time: a run on the wall clock at its own instant; one in virtual time, which has none, as if it
had begun when the manifest was written. Its attribute `docmind.epoch_utc` says so.

Everything is read off the tables of the run, after it: names and numbers, which is all they hold. A call that was
abandoned outlives the span of its run, as it did in life. Source: the semantic conventions for generative AI, spans, as
in opentelemetry-semantic-conventions 0.66b.

Spans are sent after the last run, so that no run is measured with it. What fails or hangs is left behind with a warning
in the log; the runs and their tables are what they are without it.
"""

from __future__ import annotations

import datetime
import importlib
import logging
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import requests

from docmind_lab.core.errors import ConfigurationError, DocmindLabError, ServiceError
from docmind_lab.core.numbers import require_seconds
from docmind_lab.core.settings import Settings
from docmind_lab.core.telemetry_names import (
    ERROR_TYPE,
    GIVEN,
    INSTRUMENT,
    INVOKE_WORKFLOW,
    OPERATION,
    REMAINING_AT_START,
    RUN_ATTRIBUTES,
    WORKFLOW,
)
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.records import CallRecord, RunRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span, Tracer

_NANOSECONDS: Final = 1_000_000_000
_OPERATIONS: Final[Mapping[str, str]] = {
    "llm": "chat",
    "retrieval": "retrieval",
    "tool": "execute_tool",
    "peer": "invoke_agent",
}
_CALL_ATTRIBUTES: Final[Mapping[str, str]] = {
    "run_id": "docmind.run.id",
    "call_id": "docmind.call.id",
    "attempt": "docmind.call.attempt",
    "step": "docmind.call.step",
    "outcome": "docmind.call.outcome",
    "queue_wait_s": "docmind.call.queue_wait_s",
    "timeout_s": "docmind.deadline.cap_s",
    "remaining_at_start_s": REMAINING_AT_START,
    "overrun_s": "docmind.deadline.overrun_s",
    "started_after_deadline": "docmind.deadline.started_after",
    "ended_after_return": "docmind.deadline.ended_after_return",
}


def record_run(tracer: Tracer, measured: MeasuredRun, manifest: Mapping[str, Any]) -> None:
    """Record the spans of a run as its client saw it, calls before the run; what its servers did is in the tables.

    manifest: manifest of its study, which says what the tables lack: the model, the corpus and their addresses.
    """
    # Function-level: an optional extra.
    from opentelemetry.context import Context  # noqa: PLC0415
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context  # noqa: PLC0415

    run, epoch_s = measured.run, _epoch_s(measured, manifest)

    def at(at_s: float) -> int:
        # Apart, since a float that holds both would be off by some hundred nanoseconds.
        return round(epoch_s * _NANOSECONDS) + round(at_s * _NANOSECONDS)

    def end(span: Span, attributes: Mapping[str, Any], ended_at_s: float) -> None:
        if ERROR_TYPE in attributes:
            # Without a description: the message of an error may quote what was asked.
            span.set_status(Status(StatusCode.ERROR))
        span.end(at(run.horizon_s if math.isnan(ended_at_s) else ended_at_s))

    of_run = _run_attributes(measured)
    epoch = datetime.datetime.fromtimestamp(epoch_s, datetime.UTC).isoformat(timespec="milliseconds")
    # Under no span of the caller's: a study is not a part of the request that asked for it.
    root = tracer.start_span(
        f"{INVOKE_WORKFLOW} {run.workload}",
        Context(),
        SpanKind.INTERNAL,
        {**of_run, "docmind.epoch_utc": epoch},
        start_time=at(0.0),
    )
    inside = set_span_in_context(root, Context())
    seen = sorted((call for call in measured.calls if call.seen_from == "client"), key=lambda call: call.started_at_s)
    for call in seen:
        if call.outcome != "refused":
            name, attributes = _call_attributes(call, manifest)
            span = tracer.start_span(name, inside, SpanKind.CLIENT, attributes, start_time=at(call.started_at_s))
            end(span, attributes, call.ended_at_s)
    for at_s, name, attributes in _events(run, [call for call in seen if call.outcome == "refused"]):
        root.add_event(name, attributes, at(at_s))
    end(root, of_run, run.returned_at_s)


def _epoch_s(measured: MeasuredRun, manifest: Mapping[str, Any]) -> float:
    """Return the start of the run in seconds since 1970: exact on the wall clock, else the manifest's instant."""
    if measured.run.clock == "wall" and not math.isnan(measured.started_at_s):
        return time.time() - (time.monotonic() - measured.started_at_s)
    return datetime.datetime.fromisoformat(str(manifest["created_utc"])).timestamp()


def _run_attributes(measured: MeasuredRun) -> dict[str, Any]:
    run = measured.run
    error_type = "" if run.outcome in GIVEN else measured.outcome.error_type or run.stop_reason or run.outcome
    attributes = {OPERATION: INVOKE_WORKFLOW, WORKFLOW: run.workload, **_known(run, RUN_ATTRIBUTES)}
    return attributes | ({ERROR_TYPE: error_type} if error_type else {})


def _events(run: RunRecord, refused: list[CallRecord]) -> list[tuple[float, str, dict[str, Any]]]:
    """Return the deadline, if the run lasted until it, and each call that was refused, which was never sent."""
    ended_at_s = run.horizon_s if math.isnan(run.returned_at_s) else run.returned_at_s
    is_reached = run.decision_timeout_s <= ended_at_s
    events: list[tuple[float, str, dict[str, Any]]] = [(run.decision_timeout_s, "docmind.deadline", {})] * is_reached
    for call in refused:
        attributes = {"gen_ai.agent.name": call.role, OPERATION: _OPERATIONS.get(call.kind, call.kind)}
        events.append((call.started_at_s, "docmind.call.refused", attributes))
    return sorted(events, key=lambda event: event[0])


def _call_attributes(call: CallRecord, manifest: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the attributes of a call's span."""
    operation, settings = _OPERATIONS.get(call.kind, call.kind), manifest.get("settings", {})
    attributes: dict[str, Any] = {OPERATION: operation, "gen_ai.agent.name": call.role}
    target, url = call.role, None
    if call.kind == "llm":
        llm = settings.get("llm", {})
        target, url = str(llm.get("model", "")), llm.get("base_url")
        # The protocol spoken; who is behind an address is not known.
        attributes |= {"gen_ai.provider.name": "openai", "gen_ai.request.model": target}
    elif call.kind == "retrieval":
        target, url = str(manifest.get("design", {}).get("corpus", "")), settings.get("database", {}).get("qdrant_url")
        attributes |= {"gen_ai.data_source.id": target, "db.system.name": "qdrant"}
    elif call.kind == "tool":
        attributes["gen_ai.tool.name"] = call.role
    address = urlsplit(url or "")
    if address.hostname:
        attributes |= {"server.address": address.hostname} | ({"server.port": address.port} if address.port else {})
    for side in ("input", "output"):
        tokens = getattr(call, f"{side}_tokens")
        if not math.isnan(tokens):
            attributes[f"gen_ai.usage.{side}_tokens"] = int(tokens)
    # An answer that came when nobody waited any more is no error of the call.
    came_late = call.outcome == "abandoned" and not math.isnan(call.ended_at_s)
    error_type = call.error_type or ("" if call.outcome == "ok" or came_late else call.outcome)
    attributes |= _known(call, _CALL_ATTRIBUTES) | ({ERROR_TYPE: error_type} if error_type else {})
    return f"{operation} {target}".rstrip(), attributes


def _known(record: RunRecord | CallRecord, names: Mapping[str, str]) -> dict[str, Any]:
    """Return columns as attributes with these names; leaves out what did not happen or is not known."""
    values = {name: getattr(record, column) for column, name in names.items()}
    return {name: value for name, value in values.items() if value != "" and value == value}  # NaN is not itself


# The default of OTEL_BSP_MAX_EXPORT_BATCH_SIZE: what a collector expects in one request.
_SPANS_AT_ONCE = 512


def otlp_exporter() -> SpanExporter:
    """Return the OTLP exporter over HTTP, as OTEL_EXPORTER_OTLP_* variables configure it.

    It sends to the collector that they name and to no other host: proxies of the environment are not used, and a
    redirect counts as a failure.
    """
    # Function-level: an optional extra.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

    session = requests.Session()
    session.trust_env = False
    session.hooks["response"].append(_refuse_redirect)
    return OTLPSpanExporter(session=session)


def _refuse_redirect(response: requests.Response, *_: object, **__: object) -> None:
    if response.is_redirect:
        response.close()
        raise requests.TooManyRedirects("a redirect is not followed: it may lead to a host that is not allowed")


def send_spans(measured: Sequence[MeasuredRun], manifest: Mapping[str, Any], exporter: SpanExporter) -> int:
    """Send the spans of runs, each run as its own trace; return how many were sent.

    Raises: ServiceError when the exporter does not take all of them; and any error of the exporter.
    """
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - an optional extra

    spans, count = finished_spans(measured, manifest), 0
    for start in range(0, len(spans), _SPANS_AT_ONCE):
        batch = spans[start : start + _SPANS_AT_ONCE]
        if exporter.export(batch) is SpanExportResult.SUCCESS:
            count += len(batch)
    if count < len(spans):
        raise ServiceError(f"the exporter took {count} of {len(spans)} spans; its own log says why")
    return count


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


_log = logging.getLogger("docmind_lab.telemetry")
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@dataclass(frozen=True)
class Telemetry:
    """Sends spans of runs; to nowhere by default.

    Args:
        spans: "otlp" for where OTEL_EXPORTER_OTLP_* variables say, or an exporter of OpenTelemetry's SDK, which its
            owner shuts down.
        patience_s: Seconds that an exporter is waited for; one that hangs is left behind in a daemon thread.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    spans: SpanExporter | str | None = None
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        require_seconds("telemetry.patience_s", self.patience_s)
        if isinstance(self.spans, str) and self.spans != "otlp":
            raise ConfigurationError(f"telemetry.spans must be 'otlp' or an exporter, not {self.spans!r}")

    def check(self, settings: Settings) -> None:
        """Check that spans can be sent; called before a study begins.

        Args:
            settings: Settings that say which addresses may be reached.

        Raises:
            ConfigurationError: Something is not installed.
            EndpointRefused: The settings do not admit the address.
        """
        if self.spans is not None:
            _require("OpenTelemetry", "opentelemetry.sdk.trace")
        if self.spans == "otlp":
            _require("the OTLP exporter", "opentelemetry.exporter.otlp.proto.http.trace_exporter")
            # The first that is set is the one that is used.
            if name := next(filter(os.environ.get, _ENDPOINTS), ""):
                settings.admit(os.environ[name], name=name)

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Send the spans of runs; never raises if sending fails.

        Args:
            measured: The runs.
            manifest: Manifest of their study.
        """
        if self.spans is None:
            return
        runs = sorted(measured, key=lambda item: item.run.run_id)
        thread = threading.Thread(target=self._send, args=(runs, manifest), name="docmind-telemetry", daemon=True)
        thread.start()
        thread.join(self.patience_s)
        if thread.is_alive():
            _log.warning("spans: not sent within %g s; left behind", self.patience_s)

    def _send(self, runs: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Send the spans of runs; what goes wrong is a warning in the log."""
        try:
            if not isinstance(self.spans, str) and self.spans is not None:
                send_spans(runs, manifest, self.spans)
                return
            exporter = otlp_exporter()
            try:
                send_spans(runs, manifest, exporter)
            finally:
                exporter.shutdown()
        except DocmindLabError as error:
            _log.warning("spans: not sent (%s)", error)
        except Exception as error:  # noqa: BLE001 - whatever an exporter does, the runs are what they are
            # Its type only: a message that is not ours may hold an address with a user in it.
            _log.warning("spans: not sent (%s)", type(error).__name__)


def _require(what: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        remedy = "pip install 'docmind_lab[telemetry]', or leave spans off"
        raise ConfigurationError(f"{what} is not installed: {remedy}") from error
