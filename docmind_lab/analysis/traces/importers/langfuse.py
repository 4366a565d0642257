"""Observations and traces of Langfuse, as its interface and its API export them: JSON, JSON lines, CSV or Parquet.

Source of the fields: Langfuse's public API (Observation, Trace, TraceWithFullDetails), and the exports of its tables.
A session and scores stand with the trace: export the traces into the same file or folder, or they are not known. Scores
may also be records of their own.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from docmind_lab.analysis.traces.importers.records import Record
from docmind_lab.analysis.traces.importers.spans import (
    ExportedSpan,
    instant_ns,
    metadata_session,
    outcome_of_error,
    required_instant_ns,
)

_KINDS: Final = {
    "generation": "llm",
    "tool": "tool",
    "embedding": "tool",
    "retriever": "retrieval",
    "agent": "agent",
    "chain": "agent",
}
_TRACE: Final = frozenset({"session_id", "user_id", "observations", "timestamp"})


def is_langfuse(record: Record) -> bool:
    """Whether a record is an observation or a trace of Langfuse."""
    return _is_observation(record) or _is_score(record) or _is_trace(record) or _is_download(record)


def wanted_langfuse(column: str) -> bool:
    """Whether a column of a table is read."""
    return column not in ("input", "output", "statusMessage", "status_message")


def langfuse_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    """Yield the spans of observations, with the sessions and scores of their traces.

    Raises: RecordError for one that cannot be read.
    """
    sessions: dict[str, str] = {}
    scores: defaultdict[str, dict[str, float]] = defaultdict(dict)
    spans = list(_spans(records, sessions, scores))
    for span in spans:
        session = sessions.get(span.trace_id) or span.session
        yield replace(span, session=session, scores=scores[span.trace_id])


def _spans(
    records: Iterable[Record], sessions: dict[str, str], scores: defaultdict[str, dict[str, float]]
) -> Iterator[ExportedSpan]:
    for record in records:
        if _is_observation(record):
            yield _span(record)
            continue
        if _is_score(record):
            _keep_score(record, record.required("trace_id"), scores)
            continue
        if _is_download(record):
            inner = record.values["trace"] | {"observations": record.values["observations"]}
            record = Record.of(record.where, inner)
        trace_id = record.required("id")
        sessions[trace_id] = record.text("session_id")
        for score in _objects(record, "scores"):
            _keep_score(score, trace_id, scores)
        for observation in _objects(record, "observations"):
            yield _span(observation)


def _objects(record: Record, name: str) -> Iterator[Record]:
    """Yield the objects of a list; the list of traces has only the ids of what belongs to them."""
    values = record.get(name)
    for value in values if isinstance(values, list) else []:
        if isinstance(value, dict):
            yield Record.of(record.where, value)


def _keep_score(score: Record, trace_id: str, scores: defaultdict[str, dict[str, float]]) -> None:
    # A category is a text, and says nothing of more or less.
    with contextlib.suppress(ValueError):
        scores[trace_id][score.text("name")] = float(score.text("value"))


def _is_observation(record: Record) -> bool:
    return {"type", "trace_id", "start_time", "id"} <= record.values.keys()


def _is_score(record: Record) -> bool:
    return {"trace_id", "name", "value"} <= record.values.keys()


def _is_trace(record: Record) -> bool:
    return "id" in record.values and bool(_TRACE & record.values.keys()) and "run_type" not in record.values


def _is_download(record: Record) -> bool:
    """Whether a record is what the button Download of a trace writes."""
    return isinstance(record.values.get("trace"), dict) and isinstance(record.values.get("observations"), list)


def _span(record: Record) -> ExportedSpan:
    name, node = record.text("name"), record.text("metadata.langgraph_node")
    kind = _KINDS.get(record.required("type").lower(), "")
    is_step = bool(node) and node == name and kind in ("", "agent")
    started_ns = required_instant_ns(record, "start_time")
    is_error = record.text("level").upper() == "ERROR"
    return ExportedSpan(
        where=record.where,
        trace_id=record.required("trace_id"),
        span_id=record.required("id"),
        parent_id=record.text("parent_observation_id"),
        name=name,
        kind="step" if is_step else kind,
        started_ns=started_ns,
        # An event has no length.
        ended_ns=started_ns if record.text("type").lower() == "event" else instant_ns(record, "end_time"),
        first_ns=instant_ns(record, "completion_start_time"),
        outcome=outcome_of_error(record.text("status_message") or "error") if is_error else "ok",
        input_tokens=record.number("usage_details.input", "usage.input", "usage.promptTokens", *_tokens("input")),
        output_tokens=record.number(
            "usage_details.output", "usage.output", "usage.completionTokens", *_tokens("output")
        ),
        model=record.text("model", "provided_model_name"),
        node=node,
        session=record.text("session_id") or metadata_session(record, "metadata"),
    )


def _tokens(side: str) -> tuple[str, ...]:
    older = {"input": "prompt_tokens", "output": "completion_tokens"}
    return (f"{side}_tokens", f"{side}_usage", older[side])
