"""Reads observed calls from OTLP JSON spans that follow the gen_ai or the OpenInference conventions.

A model call is a span whose gen_ai.operation.name is chat, text_completion or generate_content; a search one whose
name is retrieval. An error.type, or a status of error, means a call that was cut. Source: OpenTelemetry, Semantic
conventions for generative AI client spans, and OpenTelemetry Protocol File Exporter (both in development, 2026).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from docmind_lab.analysis.latency.calls import ObservedCalls
from docmind_lab.core.errors import ConfigurationError

_KIND_OF: Final = {
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "retrieval": "retrieval",
}
# OpenInference's conventions, as Phoenix and others export them.
_KIND_OF_SPAN: Final = {"LLM": "llm", "RETRIEVER": "retrieval"}
_OUTPUT_TOKENS: Final = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",  # up to v1.26
    "llm.token_count.completion",
)
_MODELS: Final = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name")
_NODES: Final = ("langgraph_node", "metadata.langgraph_node", "gen_ai.agent.name")
_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
# The conventions have no event for it; instrumentations that write one name it so.
_FIRST_EVENTS: Final = ("first_token", "first_chunk", "completion.chunk")
_STATUS_ERROR: Final = (2, "STATUS_CODE_ERROR")


def is_otlp(value: object) -> bool:
    """Whether a JSON value holds OTLP traces: an object with resourceSpans, or one of its elements."""
    return isinstance(value, Mapping) and bool({"resourceSpans", "scopeSpans"} & value.keys())


def calls_of_spans(documents: Iterable[Any], source: str) -> ObservedCalls:
    """Return the calls of OTLP JSON: one document, or one for each line of a file exporter.

    A span with a gen_ai child of the same kind is left out: two instrumentations saw one call, and the inner one is
    the request. Raises: ConfigurationError when there is no span of a model call, or a span cannot be read.
    """
    spans = []
    for span in otlp_spans(documents, source):
        attributes = attributes_of(span.get("attributes"))
        kind = _kind_of(attributes)
        if kind:
            spans.append((span, attributes, kind))
    if not any(kind == "llm" for _, _, kind in spans):
        raise ConfigurationError(
            f"{source} has no span of a model call: none has gen_ai.operation.name chat, text_completion or "
            "generate_content, or openinference.span.kind LLM; export the spans of an instrumentation that follows one "
            "of the two"
        )
    outer = {(span.get("traceId"), span.get("parentSpanId"), kind) for span, _, kind in spans}
    calls = [
        _call(span, attributes, kind, source)
        for span, attributes, kind in spans
        if (span.get("traceId"), span.get("spanId"), kind) not in outer
    ]
    left_out = len(spans) - len(calls)
    notes = (f"{left_out} spans around another span of the same call were left out.",) if left_out else ()
    return ObservedCalls.of({name: np.array([call[name] for call in calls]) for name in calls[0]}, source, notes)


def _kind_of(attributes: Mapping[str, Any]) -> str | None:
    by_name = _KIND_OF.get(str(attributes.get("gen_ai.operation.name", "")))
    return by_name or _KIND_OF_SPAN.get(str(attributes.get("openinference.span.kind", "")).upper())


def otlp_spans(documents: Iterable[Any], source: str) -> Iterator[Mapping[str, Any]]:
    """Yield the spans of OTLP JSON documents. Raises: ConfigurationError for one that is no OTLP JSON."""
    try:
        for document in documents:
            for resource in document.get("resourceSpans", [document]):
                for scope in resource.get("scopeSpans", []):
                    yield from scope.get("spans", [])
    except (AttributeError, TypeError) as error:
        raise ConfigurationError(
            f"{source} is not OTLP JSON: expected resourceSpans[].scopeSpans[].spans[]; export traces as JSON"
        ) from error


def _call(span: Mapping[str, Any], attributes: Mapping[str, Any], kind: str, source: str) -> dict[str, Any]:
    try:
        begun_ns, ended_ns = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        first_s = _first_token_s(span, attributes, begun_ns)
        tokens = next((float(attributes[name]) for name in _OUTPUT_TOKENS if name in attributes), np.nan)
        failed = "error.type" in attributes or (span.get("status") or {}).get("code") in _STATUS_ERROR
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{source}: span {span.get('name', '')!r} cannot be read ({type(error).__name__}: {error}); "
            "it needs startTimeUnixNano and endTimeUnixNano, and numbers where the gen_ai conventions have them"
        ) from error
    return {
        "kind": kind,
        "complete": not failed,
        "latency_s": (ended_ns - begun_ns) / 1e9,
        "first_token_s": first_s,
        "output_tokens": tokens,
        "model": str(next((attributes[name] for name in _MODELS if attributes.get(name)), "")),
        "node": str(next((attributes[name] for name in _NODES if attributes.get(name)), "")),
        # A trace is one run of the user's system.
        "session": str(span.get("traceId") or ""),
    }


def _first_token_s(span: Mapping[str, Any], attributes: Mapping[str, Any], begun_ns: int) -> float:
    if _FIRST_CHUNK in attributes:
        return float(attributes[_FIRST_CHUNK])
    instants_ns = [
        int(event["timeUnixNano"])
        for event in span.get("events") or ()
        if str(event.get("name", "")).lower().replace(" ", "_").endswith(_FIRST_EVENTS)
    ]
    return (min(instants_ns) - begun_ns) / 1e9 if instants_ns else np.nan


def attributes_of(pairs: Any) -> dict[str, Any]:
    """Return attributes by key; an AnyValue is an object with one member, and int64 stands in quotes."""
    result = {}
    for pair in pairs or ():
        value = pair.get("value") or {}
        for form, content in value.items():
            result[pair.get("key")] = int(content) if form == "intValue" else content
    return result
