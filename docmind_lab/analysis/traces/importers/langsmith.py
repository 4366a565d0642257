"""Runs of LangSmith, as its SDK's `Run` objects are written: JSON, JSON lines, CSV or Parquet.

Source of the fields: langsmith.schemas.Run (0.15). A chain is a step of a graph where it has the name of a node of
LangGraph, and an agent otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from docmind_lab.analysis.traces.importers.records import Record, as_mapping
from docmind_lab.analysis.traces.importers.spans import (
    ExportedSpan,
    instant_ns,
    metadata_session,
    outcome_of_error,
    required_instant_ns,
)

_KINDS: Final = {"llm": "llm", "tool": "tool", "retriever": "retrieval", "embedding": "tool", "chain": "agent"}


def is_langsmith(record: Record) -> bool:
    """Whether a record is a run of LangSmith."""
    return {"run_type", "start_time"} <= record.values.keys()


def wanted_langsmith(column: str) -> bool:
    """Whether a column of a table is read; inputs and outputs hold text, and only old exports count tokens there."""
    return column not in ("inputs", "events", "serialized", "attachments")


def langsmith_spans(records: Iterable[Record]) -> Iterator[ExportedSpan]:
    """Yield the spans of runs. Raises: RecordError for one that cannot be read."""
    for record in records:
        yield _span(record)
        children = record.get("child_runs")
        if isinstance(children, list):
            yield from langsmith_spans(Record.of(record.where, child) for child in children)


def _span(record: Record) -> ExportedSpan:
    name, node = record.text("name"), record.text("extra.metadata.langgraph_node")
    kind = _KINDS.get(record.required("run_type").lower(), "")
    ident = record.required("id")
    return ExportedSpan(
        where=record.where,
        trace_id=record.text("trace_id") or ident,
        span_id=ident,
        parent_id=record.text("parent_run_id"),
        name=name,
        kind="step" if kind == "agent" and node and node == name else kind,
        started_ns=required_instant_ns(record, "start_time"),
        ended_ns=instant_ns(record, "end_time"),
        first_ns=instant_ns(record, "first_token_time"),
        outcome=outcome_of_error(record.text("error")),
        input_tokens=record.number("prompt_tokens", "outputs.llm_output.token_usage.prompt_tokens"),
        output_tokens=record.number("completion_tokens", "outputs.llm_output.token_usage.completion_tokens"),
        model=record.text(
            "extra.metadata.ls_model_name", "extra.invocation_params.model", "extra.invocation_params.model_name"
        ),
        node=node,
        session=metadata_session(record, "extra.metadata"),
        scores=_scores(record),
    )


def _scores(record: Record) -> dict[str, float]:
    """Return the mean of each feedback key that has numbers."""
    named = as_mapping(record.get("feedback_stats"))
    means = {name: stats.get("avg") for name, stats in named.items() if isinstance(stats, dict)}
    return {name: float(mean) for name, mean in means.items() if isinstance(mean, int | float) and abs(mean) < math.inf}
