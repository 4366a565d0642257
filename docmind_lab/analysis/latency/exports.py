"""Reads observed calls from exports of tracing tools: LangSmith, Langfuse, and Phoenix or another OpenInference store.

An export is recognised by its columns, whichever file it stands in. Sources of the columns: langsmith.schemas.Run,
Langfuse's public API (Observation), and Phoenix's REST API and data frames of spans, as of November 2026.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.analysis.latency.calls import ObservedCalls, instants_of
from docmind_lab.core.errors import ConfigurationError

_LLM_RETRIEVAL: Final = {"llm": "llm", "generation": "llm", "retriever": "retrieval"}


@dataclass(frozen=True)
class Export:
    """The columns of a tracing tool's export; of several names for one thing the first that is there counts.

    Args:
        tool: Name of the tool.
        marks: Columns that tell the export from others.
        kind: What a row is: a model call, a search, or something else.
        ident: Id of the row.
        parent: Id of the row around it.
        started: When it began.
        ended: When it ended.
        first: When its first token came.
        tokens: Tokens that were generated.
        model: The model.
        node: The node of the graph that made the call.
        session: The run that the call belongs to.
        error: An error's text; empty for none.
        status: A word for how it ended.
        nested: Columns that hold JSON, as a text where the file is a table.
    """

    tool: str
    marks: frozenset[str]
    kind: str
    ident: str
    parent: str
    started: str
    ended: str
    first: str = ""
    tokens: Sequence[str] = ()
    model: Sequence[str] = ()
    node: Sequence[str] = ()
    session: str = ""
    error: str = ""
    status: str = ""
    nested: Sequence[str] = field(default=())


EXPORTS: Final = (
    Export(
        "LangSmith",
        frozenset({"run_type", "start_time", "end_time"}),
        kind="run_type",
        ident="id",
        parent="parent_run_id",
        started="start_time",
        ended="end_time",
        first="first_token_time",
        tokens=("completion_tokens", "outputs.llm_output.token_usage.completion_tokens"),
        model=("extra.metadata.ls_model_name", "extra.invocation_params.model", "extra.invocation_params.model_name"),
        node=("extra.metadata.langgraph_node",),
        session="trace_id",
        error="error",
        nested=("extra", "outputs"),
    ),
    Export(
        "Langfuse",
        frozenset({"type", "trace_id", "start_time", "end_time", "level"}),
        kind="type",
        ident="id",
        parent="parent_observation_id",
        started="start_time",
        ended="end_time",
        first="completion_start_time",
        tokens=("usage_details.output", "usage.output", "output_tokens", "completion_tokens"),
        model=("model", "provided_model_name"),
        node=("metadata.langgraph_node",),
        session="trace_id",
        status="level",
        nested=("usage_details", "usage", "metadata"),
    ),
    Export(
        "OpenInference",
        frozenset({"span_kind", "start_time", "end_time", "context.trace_id"}),
        kind="span_kind",
        ident="context.span_id",
        parent="parent_id",
        started="start_time",
        ended="end_time",
        tokens=("attributes.llm.token_count.completion",),
        model=("attributes.llm.model_name",),
        node=("attributes.metadata.langgraph_node",),
        session="context.trace_id",
        status="status_code",
        nested=("context", "attributes", "attributes.metadata"),
    ),
)

_ERROR_STATUS: Final = {"error", "status_code_error"}


def export_of(frame: pd.DataFrame) -> Export | None:
    """Return the export that a table is, or None. frame: as `flat` returns it."""
    return next((export for export in EXPORTS if export.marks <= set(frame.columns)), None)


def flat(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table with names as `EXPORTS` writes them: words joined by "_", nested values by "."."""
    named = rows.rename(columns={name: _snake(str(name)) for name in rows.columns})
    for export in EXPORTS:
        for column in export.nested:
            if column in named:
                parsed = [_mapping(value) for value in named[column]]
                if any(parsed):
                    inner = pd.json_normalize(parsed, sep=".").add_prefix(f"{column}.")
                    inner.columns = pd.Index([_snake(str(name)) for name in inner.columns])
                    inner.index = named.index
                    named = named.join(inner[[name for name in inner.columns if name not in named]])
    return named


def calls_of_export(frame: pd.DataFrame, export: Export, source: str) -> ObservedCalls:
    """Return the model calls and searches of an export; a call around another of the same kind is left out.

    Args:
        frame: As `flat` returns it.
        export: Its columns.
        source: How errors and descriptions call it.

    Raises:
        ConfigurationError: There is no model call, or an instant cannot be read.
    """
    kinds = frame[export.kind].astype("str").str.lower().map(_LLM_RETRIEVAL)
    calls = frame[kinds.notna()].assign(kind=kinds[kinds.notna()])
    if not (calls["kind"] == "llm").any():
        raise ConfigurationError(
            f"{source}: this export of {export.tool} has no model call; export the rows of all kinds, llm among them"
        )
    around = set()
    if {export.ident, export.parent} <= set(calls):
        kind_of = dict(zip(calls[export.ident].astype("str"), calls["kind"], strict=True))
        parents = calls[export.parent].astype("str")
        around = {parent for parent, kind in zip(parents, calls["kind"], strict=True) if kind_of.get(parent) == kind}
        calls = calls[~calls[export.ident].astype("str").isin(around)]
    begun_s, ended_s = (instants_of(calls, source, name) for name in (export.started, export.ended))
    first_s = instants_of(calls, source, export.first) if export.first in calls else np.full(len(calls), np.nan)
    failed = np.zeros(len(calls), dtype="bool")
    if export.error in calls:
        failed |= _texts(calls, export.error).str.strip().ne("").to_numpy()
    if export.status in calls:
        failed |= _texts(calls, export.status).str.lower().isin(_ERROR_STATUS).to_numpy()
    notes = (f"{len(around)} calls around another of the same kind were left out.",) if around else ()
    return ObservedCalls.of(
        {
            "kind": calls["kind"].to_numpy(),
            "complete": ~failed,
            "latency_s": ended_s - begun_s,
            "first_token_s": first_s - begun_s,
            "output_tokens": pd.to_numeric(_first_of(calls, export.tokens), errors="coerce").to_numpy("float64"),
            "model": _first_of(calls, export.model).fillna("").astype("str").to_numpy(),
            "node": _first_of(calls, export.node).fillna("").astype("str").to_numpy(),
            "session": _texts(calls, export.session).to_numpy() if export.session in calls else "",
        },
        f"{source} ({export.tool})",
        notes,
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def _texts(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    return frame[column].astype("object").where(frame[column].notna(), "").astype("str")


def _first_of(frame: pd.DataFrame, columns: Sequence[str]) -> pd.Series[Any]:
    """Return for each row the value of the first of these columns that has one."""
    values = pd.Series(np.nan, index=frame.index, dtype="object")
    for column in columns:
        if column in frame:
            values = values.where(values.notna(), frame[column])
    return values
