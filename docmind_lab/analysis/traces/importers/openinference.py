"""Spans of Phoenix, or another store of OpenInference spans: the data frame of `get_spans_dataframe` as Parquet, CSV or
JSON lines, or the answers of its REST API.

Source of the names: openinference-semantic-conventions, and arize-phoenix-client's `spans`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from docmind_lab.analysis.traces.importers.records import Record
from docmind_lab.analysis.traces.importers.spans import (
    ExportedSpan,
    instant_ns,
    metadata_session,
    outcome_of_error,
    required_instant_ns,
)

KINDS: Final = {
    "LLM": "llm",
    "RETRIEVER": "retrieval",
    "TOOL": "tool",
    "EMBEDDING": "tool",
    "RERANKER": "tool",
    "AGENT": "agent",
    "CHAIN": "agent",
    "GUARDRAIL": "agent",
    "EVALUATOR": "agent",
}
"""The kinds of OpenInference spans."""
_READ: Final = (
    *("name", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message", "context"),
    *("attributes", "attributes.llm", "attributes.metadata", "attributes.session", "attributes.graph"),
)


def is_openinference(record: Record) -> bool:
    """Whether a record is a span of Phoenix."""
    names = record.values.keys()
    return {"span_kind", "start_time"} <= names and bool({"context.trace_id", "context"} & names)


def wanted_openinference(column: str) -> bool:
    """Whether a column of a Parquet file is read; most of the others hold text."""
    inside = ("context.", "attributes.llm.model", "attributes.llm.token_count", "attributes.metadata.")
    return column in _READ or column.startswith((*inside, "attributes.session.", "attributes.graph."))


def openinference_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    """Yield the spans. Raises: RecordError for one that cannot be read."""
    for record in records:
        name = record.text("name")
        node = record.text("attributes.metadata.langgraph_node", "attributes.graph.node.id")
        kind = KINDS.get(record.text("span_kind").upper(), "")
        failed = record.text("status_code").upper().endswith("ERROR")
        yield ExportedSpan(
            where=record.where,
            trace_id=record.required("context.trace_id"),
            span_id=record.required("context.span_id"),
            parent_id=record.text("parent_id"),
            name=name,
            kind="step" if kind == "agent" and node and node == name else kind,
            started_ns=required_instant_ns(record, "start_time"),
            ended_ns=instant_ns(record, "end_time"),
            outcome=outcome_of_error(record.text("status_message") or "error") if failed else "ok",
            input_tokens=record.number("attributes.llm.token_count.prompt"),
            output_tokens=record.number("attributes.llm.token_count.completion"),
            model=record.text("attributes.llm.model_name"),
            node=node,
            session=record.text("attributes.session.id") or metadata_session(record, "attributes.metadata"),
        )


def kind_of_attributes(attributes: dict[str, Any]) -> str:
    """Return the kind of an OpenTelemetry span with OpenInference's attributes; empty for none."""
    return KINDS.get(str(attributes.get("openinference.span.kind", "")).upper(), "")
