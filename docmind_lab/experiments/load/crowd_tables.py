"""The two tables of a load study: a row for each query, and a row for each request that the model server received.

    queries     every column of `runs`, and those of `QUERY_COLUMNS`
    servings    the columns of `SERVING_COLUMNS`

Instants of both are seconds since the begin of the crowd; columns that are those of `runs` count from the start
of the run, which is `started_at_s`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import NAN
from docmind_lab.experiments.load.crowd import QueryResult
from docmind_lab.tables.frames import to_frame, with_dtypes
from docmind_lab.tables.records import CallRecord, RunRecord

# Instants that were added up in two ways differ in their last digits only.
_SAME_INSTANT_S = 1e-6

QUERY_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "arrivals": "category",
        "offered_per_s": "float64",
        "slots": "Int64",
        "callers": "Int64",
        "replicate": "int64",
        "query": "int64",
        **dict.fromkeys(("window_from_s", "window_until_s", "scheduled_at_s", "started_at_s"), "float64"),
        **dict.fromkeys(("waited_for_caller_s", "response_s"), "float64"),
        "in_time": "bool",
    }
)
"""The columns that `queries` has besides those of `runs`, with their dtypes.

arrivals: the kind of the arrival process; offered_per_s: its rate. slots: of the provider; callers: of the system; NA
for no limit. replicate: 0, 1, …; its arrivals, questions and draws are the same under every alternative. query: place
in its replicate. window_from_s, window_until_s: queries that arrive in between are counted. waited_for_caller_s: from
the scheduled arrival to the start. response_s: from the scheduled arrival until the caller was back, NaN if it was not
by the horizon. in_time: answered, and response_s within the decision timeout.
"""

SERVING_COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("study_id", "run_id", "call_id"), "str"),
        "attempt": "int64",
        **dict.fromkeys(("role", "outcome"), "category"),
        **dict.fromkeys(("received_at_s", "served_from_s", "left_at_s", "tokens"), "float64"),
    }
)
"""The columns of `servings`, with their dtypes: one row is a request at the model server.

served_from_s: a slot was had, NaN if never. left_at_s: answered, given up, or cut at the horizon of its run. outcome:
that of the server's row in `calls`. tokens: read and written for it, as the server counted; NaN in tables from before
they were counted.
"""


@dataclass(frozen=True)
class QueryRows:
    """The rows that one query has: of the run, of its load (`QUERY_COLUMNS`), and of its requests."""

    run: RunRecord
    load: Mapping[str, Any]
    servings: tuple[Mapping[str, Any], ...]


def rows_of_query(result: QueryResult, **same: Any) -> QueryRows:
    """Make the rows of a query. same: those of `QUERY_COLUMNS` that were fixed before it arrived."""
    run = result.measured.run
    response_s = result.waited_for_caller_s + run.returned_at_s
    load = same | {
        "query": result.number,
        "scheduled_at_s": result.query.scheduled_at_s,
        "started_at_s": result.started_at_s,
        "waited_for_caller_s": result.waited_for_caller_s,
        "response_s": response_s,
        "in_time": run.outcome == "answered" and response_s <= run.decision_timeout_s,
    }
    requests = (call for call in result.measured.calls if call.seen_from == "server" and call.kind == "llm")
    return QueryRows(run, load, tuple(_serving(call, result.started_at_s, run.horizon_s) for call in requests))


def _serving(call: CallRecord, started_at_s: float, horizon_s: float) -> dict[str, Any]:
    # What has not ended by the horizon is cut there, and its slot is free.
    left_s = horizon_s if math.isnan(call.ended_at_s) else call.ended_at_s
    served_from_s = call.started_at_s + call.queue_wait_s
    return {name: getattr(call, name) for name in ("study_id", "run_id", "call_id", "attempt", "role", "outcome")} | {
        "received_at_s": started_at_s + call.started_at_s,
        "served_from_s": NAN if served_from_s > left_s - _SAME_INSTANT_S else started_at_s + served_from_s,
        "left_at_s": started_at_s + left_s,
        "tokens": call.input_tokens + call.output_tokens,
    }


def frames_of(rows: Sequence[QueryRows]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the tables `queries` and `servings`, with their dtypes, in the order of the rows."""
    loads = pd.DataFrame([row.load for row in rows], columns=list(QUERY_COLUMNS)).astype(dict(QUERY_COLUMNS))
    servings = [serving for row in rows for serving in row.servings]
    requests = pd.DataFrame(servings, columns=list(SERVING_COLUMNS)).astype(dict(SERVING_COLUMNS))
    return pd.concat([to_frame("runs", [row.run for row in rows]), loads], axis=1), requests


def concat_queries(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate `queries` tables, ordered by run, and restore their dtypes. Raises: RecordError for other tables."""
    frame = _concatenate(frames)
    missing = [name for name in QUERY_COLUMNS if name not in frame]
    if missing:
        raise RecordError(f"queries has no column {', '.join(missing)}; it was not written by this package")
    return pd.concat([with_dtypes("runs", frame), frame[list(QUERY_COLUMNS)].astype(dict(QUERY_COLUMNS))], axis=1)


def concat_servings(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate `servings` tables, ordered by run, and restore their dtypes."""
    frame = _concatenate(frames)
    # Written before tokens were counted here.
    return (frame if "tokens" in frame else frame.assign(tokens=NAN)).astype(dict(SERVING_COLUMNS))


def _concatenate(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    # Levels differ from cell to cell; as plain text they are united when the dtypes are set anew.
    plain = [frame.astype(dict.fromkeys(frame.select_dtypes("category"), "str")) for frame in frames]
    return pd.concat(plain, ignore_index=True).sort_values("run_id", kind="stable", ignore_index=True)
