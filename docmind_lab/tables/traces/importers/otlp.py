"""OpenTelemetry spans: OTLP JSON as the Collector's file exporter and Tempo write it, and what the console exporter of
the SDK prints.

Kinds, tokens and models are those of the conventions gen_ai or OpenInference. Source: OpenTelemetry, Semantic
conventions for generative AI client and agent spans, and OpenTelemetry Protocol File Exporter (in development, 2026);
Tempo's /api/traces and /api/v2/traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from docmind_lab.core.errors import RecordError
from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.importers.spans import (
    ExportedSpan,
    SpanFormat,
    instant_ns,
    outcome_of_error,
    required_instant_ns,
)
from docmind_lab.tables.traces.importers.tracing_tools import KINDS

_KINDS: Final = {
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "retrieval": "retrieval",
    "embeddings": "tool",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "agent",
}
_INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT_TOKENS: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",  # up to v1.26
    "llm.token_count.completion",
)
_MODELS: Final = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_NODES: Final = ("langgraph_node", "metadata.langgraph_node", "gen_ai.agent.name")
_SESSIONS: Final = ("gen_ai.conversation.id", "session.id", "thread_id", "metadata.thread_id")
_FIRST_TOKEN: Final = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
# The conventions have no event for it; instrumentations that write one name it so.
_FIRST_EVENTS: Final = ("first_token", "first_chunk", "completion.chunk")
_STATUS_ERROR: Final = (2, "2", "STATUS_CODE_ERROR")
_OF_OTLP: Final = ("resource_spans", "scope_spans", "batches")


def _is_otlp(record: Record) -> bool:
    """Whether a record holds spans of OpenTelemetry: OTLP JSON, an answer of Tempo, a span of the console."""
    values = record.values
    trace = values.get("trace")
    inside = Record.of(record.where, trace).values if isinstance(trace, dict) else {}
    return any(name in values or name in inside for name in _OF_OTLP) or _is_console(values)


def _is_console(values: Mapping[str, Any]) -> bool:
    context = values.get("context")
    return isinstance(context, dict) and {"trace_id", "span_id"} <= context.keys() and "span_kind" not in values


def _spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    for record in records:
        if _is_console(record.values):
            yield _read(record.values, _console_span, record.where)
        else:
            for span in plain_spans(record):
                yield _read(span, _otlp_span, record.where)


def plain_spans(record: Record) -> Iterator[Mapping[str, Any]]:
    """Yield the spans of OTLP JSON as they are: of a whole request, or of one of its resources.

    Raises: RecordError for one that is no OTLP JSON.
    """
    values: Any = record.values
    if "trace" in values:
        values = Record.of(record.where, values["trace"]).values
    resources = values.get("resource_spans") or values.get("batches") or [values]
    for resource in _list(resources, record.where):
        for scope in _list(resource.get("scopeSpans", resource.get("scope_spans", [])), record.where):
            yield from _list(scope.get("spans", []), record.where)


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Return attributes by key; an AnyValue is an object with one member, and int64 stands in quotes."""
    result = {}
    for pair in pairs or ():
        value = pair.get("value") or {}
        for form, content in value.items():
            result[pair.get("key")] = int(content) if form == "intValue" else content
    return result


def _list(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise RecordError(
            f"{where}: it is not OTLP JSON: expected resourceSpans[].scopeSpans[].spans[]; export traces as JSON"
        )
    return value


def _read(span: Mapping[str, Any], reader: Any, where: str) -> ExportedSpan:
    try:
        result: ExportedSpan = reader(span, where)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(
            f"{where}: span {span.get('name', '')!r} cannot be read ({type(error).__name__}: {error}); it needs "
            "traceId, spanId, startTimeUnixNano and endTimeUnixNano, and numbers where the gen_ai conventions have them"
        ) from error
    return result


def _otlp_span(span: Mapping[str, Any], where: str) -> ExportedSpan:
    attributes = attributes_of(span.get("attributes"))
    events = [
        (str(each.get("name", "")), int(each.get("timeUnixNano", 0)), attributes_of(each.get("attributes")))
        for each in span.get("events") or ()
    ]
    ended = int(span["endTimeUnixNano"])
    status = span.get("status") or {}
    return _span(
        where,
        ids=(str(span.get("traceId") or ""), str(span.get("spanId") or ""), str(span.get("parentSpanId") or "")),
        name=str(span.get("name", "")),
        # An end of zero is a span that had not ended.
        times=(int(span["startTimeUnixNano"]), ended or None),
        attributes=attributes,
        events=events,
        failed=status.get("code") in _STATUS_ERROR,
    )


def _console_span(span: Mapping[str, Any], where: str) -> ExportedSpan:
    record, context = Record(where, dict(span)), span["context"]
    events = [
        (
            str(each.get("name", "")),
            required_instant_ns(Record(where, dict(each)), "timestamp"),
            each["attributes"] or {},
        )
        for each in span.get("events") or ()
    ]
    status = (span.get("status") or {}).get("status_code")
    ids = (context["trace_id"], context["span_id"], span.get("parent_id") or "")
    return _span(
        where,
        ids=tuple(str(each).removeprefix("0x") for each in ids),  # type: ignore[arg-type]
        name=str(span.get("name", "")),
        times=(required_instant_ns(record, "start_time"), instant_ns(record, "end_time")),
        attributes=dict(span.get("attributes") or {}),
        events=events,
        failed=status == "ERROR",
    )


def _span(
    where: str,
    *,
    ids: tuple[str, str, str],
    name: str,
    times: tuple[int, int | None],
    attributes: dict[str, Any],
    events: list[tuple[str, int, dict[str, Any]]],
    failed: bool,
) -> ExportedSpan:
    read = Record(where, attributes)
    kind = _KINDS.get(str(attributes.get("gen_ai.operation.name", ""))) or KINDS.get(
        str(attributes.get("openinference.span.kind", "")).lower(), ""
    )
    error = str(attributes.get("error.type", "")) or next(
        (str(values.get("exception.type", "")) for event, _, values in events if event == "exception"), ""
    )
    # An error that a span handled and did not report is not how it ended.
    failed = failed or "error.type" in attributes
    return ExportedSpan(
        where,
        *ids,
        name=name,
        kind="step" if kind == "agent" and name and name == read.text("metadata.langgraph_node") else kind,
        started_ns=times[0],
        ended_ns=times[1],
        first_ns=_first_ns(attributes, events, times[0]),
        outcome=outcome_of_error(error.rpartition(".")[2] or "error") if failed else "ok",
        input_tokens=read.number(*_INPUT_TOKENS),
        output_tokens=read.number(*_OUTPUT_TOKENS),
        model=read.text(*_MODELS),
        node=read.text(*_NODES),
        session=read.text(*_SESSIONS),
    )


def _first_ns(attributes: Mapping[str, Any], events: list[tuple[str, int, dict[str, Any]]], begun: int) -> int | None:
    for name in _FIRST_TOKEN:
        if name in attributes:
            return begun + round(float(attributes[name]) * 1e9)
    instants = [at_ns for event, at_ns, _ in events if event.lower().replace(" ", "_").endswith(_FIRST_EVENTS)]
    return min(instants, default=None)


OTLP: Final = SpanFormat("OpenTelemetry", _is_otlp, _spans)
"""OTLP JSON, the answers of Tempo, and what the SDK's console exporter prints."""
