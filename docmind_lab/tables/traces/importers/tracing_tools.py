"""Spans of LangSmith, Langfuse and Phoenix, as these tools export them: JSON, JSON lines or Parquet.

Sources of the names: langsmith.schemas.Run (0.15); Langfuse's public API (Observation, Trace, TraceWithFullDetails) and
the exports of its tables; openinference-semantic-conventions and arize-phoenix-client's `spans`. A chain is a step of a
graph where it has the name of a node of LangGraph, and an agent otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.importers.spans import (
    ExportedSpan,
    SpanFormat,
    instant_ns,
    outcome_of_error,
    required_instant_ns,
)


@dataclass(frozen=True)
class Fields:
    """Where the records of a tool have what: paths as `Record.get` takes them.

    kinds: its words in small letters → our kinds. steps: the kinds that are a step where the name is that of a node.
    """

    kind: str
    kinds: Mapping[str, str]
    metadata: str
    trace_id: str
    span_id: str
    parent_id: str
    model: tuple[str, ...]
    input_tokens: tuple[str, ...]
    output_tokens: tuple[str, ...]
    first: str = ""
    steps: tuple[str, ...] = ("agent",)
    node: tuple[str, ...] = ()
    session: tuple[str, ...] = ()

    def span(self, record: Record, error: str) -> ExportedSpan:
        """Return the span of a record. error: its name; "" for none. Raises: RecordError if it cannot be read."""
        name, span_id = record.text("name"), record.required(self.span_id)
        node = record.text(f"{self.metadata}.langgraph_node", *self.node)
        kind = self.kinds.get(record.text(self.kind).lower(), "")
        sessions = (f"{self.metadata}.{each}" for each in ("thread_id", "session_id", "conversation_id"))
        return ExportedSpan(
            where=record.where,
            trace_id=record.text(self.trace_id) or span_id,
            span_id=span_id,
            parent_id=record.text(self.parent_id),
            name=name,
            kind="step" if kind in self.steps and node and node == name else kind,
            started_ns=required_instant_ns(record, "start_time"),
            ended_ns=instant_ns(record, "end_time"),
            first_ns=instant_ns(record, self.first) if self.first else None,
            outcome=outcome_of_error(error),
            input_tokens=record.number(*self.input_tokens),
            output_tokens=record.number(*self.output_tokens),
            model=record.text(*self.model),
            node=node,
            session=record.text(*self.session, *sessions),
        )


# ---- LangSmith

_OF_LANGSMITH: Final = Fields(
    kind="run_type",
    kinds={"llm": "llm", "tool": "tool", "retriever": "retrieval", "embedding": "tool", "chain": "agent"},
    metadata="extra.metadata",
    trace_id="trace_id",
    span_id="id",
    parent_id="parent_run_id",
    first="first_token_time",
    model=("extra.metadata.ls_model_name", "extra.invocation_params.model", "extra.invocation_params.model_name"),
    input_tokens=("prompt_tokens", "outputs.llm_output.token_usage.prompt_tokens"),
    output_tokens=("completion_tokens", "outputs.llm_output.token_usage.completion_tokens"),
)


def _langsmith_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    for record in records:
        record.required("run_type")
        yield _OF_LANGSMITH.span(record, record.text("error"))
        children = record.get("child_runs")
        if isinstance(children, list):
            yield from _langsmith_spans(Record.of(record.where, child) for child in children)


LANGSMITH: Final = SpanFormat(
    "LangSmith", lambda record: {"run_type", "start_time"} <= record.values.keys(), _langsmith_spans
)


# ---- Phoenix, or another store of OpenInference spans

KINDS: Final = {
    "llm": "llm",
    "retriever": "retrieval",
    **dict.fromkeys(("tool", "embedding", "reranker"), "tool"),
    **dict.fromkeys(("agent", "chain", "guardrail", "evaluator"), "agent"),
}
"""The kinds of OpenInference spans, in small letters."""
_OF_OPENINFERENCE: Final = Fields(
    kind="span_kind",
    kinds=KINDS,
    metadata="attributes.metadata",
    trace_id="context.trace_id",
    span_id="context.span_id",
    parent_id="parent_id",
    model=("attributes.llm.model_name",),
    input_tokens=("attributes.llm.token_count.prompt",),
    output_tokens=("attributes.llm.token_count.completion",),
    node=("attributes.graph.node.id",),
    session=("attributes.session.id",),
)


def _is_openinference(record: Record) -> bool:
    """Whether a record is a span of Phoenix."""
    names = record.values.keys()
    return {"span_kind", "start_time"} <= names and bool({"context.trace_id", "context"} & names)


def _openinference_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    for record in records:
        failed = record.text("status_code").upper().endswith("ERROR")
        record.required("context.trace_id")
        yield _OF_OPENINFERENCE.span(record, (record.text("status_message") or "error") if failed else "")


OPENINFERENCE: Final = SpanFormat("OpenInference", _is_openinference, _openinference_spans)

# ---- Langfuse: a session stands with the trace, which may be in another file of the folder

_OF_LANGFUSE: Final = Fields(
    kind="type",
    kinds={"generation": "llm", "tool": "tool", "embedding": "tool", "retriever": "retrieval"}
    | dict.fromkeys(("agent", "chain"), "agent"),
    metadata="metadata",
    trace_id="trace_id",
    span_id="id",
    parent_id="parent_observation_id",
    first="completion_start_time",
    steps=("", "agent"),
    model=("model", "provided_model_name"),
    input_tokens=(
        *("usage_details.input", "usage.input", "usage.promptTokens", "input_tokens", "input_usage", "prompt_tokens"),
    ),
    output_tokens=(
        *("usage_details.output", "usage.output", "usage.completionTokens"),
        *("output_tokens", "output_usage", "completion_tokens"),
    ),
    session=("session_id",),
)
_OF_TRACE: Final = frozenset({"session_id", "user_id", "observations", "timestamp"})


def _is_langfuse(record: Record) -> bool:
    """Whether a record is an observation or a trace of Langfuse."""
    is_trace = "id" in record.values and _OF_TRACE & record.values.keys() and "run_type" not in record.values
    return bool(is_trace) or _is_observation(record) or _is_download(record)


def _langfuse_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    """Yield the spans of observations, with the sessions of their traces."""
    sessions: dict[str, str] = {}
    spans: list[ExportedSpan] = []
    for record in records:
        if _is_observation(record):
            spans.append(_observation(record))
            continue
        trace = record
        if _is_download(record):
            inner = record.values["trace"] | {"observations": record.values["observations"]}
            trace = Record.of(record.where, inner)
        sessions[trace.required("id")] = trace.text("session_id")
        # The list of traces has only the ids of what belongs to them.
        values = trace.get("observations")
        observations = [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []
        spans += (_observation(Record.of(record.where, each)) for each in observations)
    for span in spans:
        yield replace(span, session=sessions.get(span.trace_id) or span.session)


def _observation(record: Record) -> ExportedSpan:
    for name in ("trace_id", "type"):
        record.required(name)
    is_error = record.text("level").upper() == "ERROR"
    span = _OF_LANGFUSE.span(record, (record.text("status_message") or "error") if is_error else "")
    # An event has no length.
    return replace(span, ended_ns=span.started_ns) if record.text("type").lower() == "event" else span


def _is_observation(record: Record) -> bool:
    return {"type", "trace_id", "start_time", "id"} <= record.values.keys()


def _is_download(record: Record) -> bool:
    """Whether a record is what the button Download of a trace writes."""
    return isinstance(record.values.get("trace"), dict) and isinstance(record.values.get("observations"), list)


LANGFUSE: Final = SpanFormat("Langfuse", _is_langfuse, _langfuse_spans)
