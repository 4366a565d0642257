"""Observed calls, one row each, read from a DataFrame, a file of several kinds, or an export of a tracing tool.

read_calls("calls.csv", {"latency_s": "duration_ms:ms", "outcome": "status"}, ok=("finished",))
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.tables.traces.importers import SPAN_FORMATS, span_format_of
from docmind_lab.tables.traces.importers.export_records import Record, json_values, records_of, records_of_frame
from docmind_lab.tables.traces.importers.spans import ExportedSpan, innermost

Source = pd.DataFrame | str | os.PathLike[str]

_SUFFIXES: Final = (".csv", ".parquet", ".json", ".jsonl", ".ndjson")
COLUMNS: Final = ("kind", "complete", "latency_s", "first_token_s", "output_tokens", "model", "node", "session")


@dataclass(frozen=True, eq=False)
class ObservedCalls:
    """Calls whose latencies were observed: the input of a fit.

    frame: one row per call. Columns: kind (str: llm or retrieval), complete (bool: False is a call that was cut, by a
    timeout, a cancellation or an error, after latency_s), latency_s (from the start of service), first_token_s (NaN:
    none had come, or it was not recorded), output_tokens (NaN: not known; of a cut call those that had come), model
    (str), node (str: of the graph that made the call; empty: not known), session (str: the run or conversation that it
    belongs to; empty: not known). source: what it was read from, for descriptions. notes: what was left out or assumed
    in reading it.
    """

    frame: pd.DataFrame
    source: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], source: str, notes: tuple[str, ...] = ()) -> ObservedCalls:
        """Return checked calls; rows without a latency are left out and counted in a note.

        Raises: ConfigurationError for negative or infinite numbers, and for a first token after the end.
        """
        frame = pd.DataFrame(
            {"session": "", "node": "", **{name: columns[name] for name in COLUMNS if name in columns}}
        )[[*COLUMNS]]
        for name in ("latency_s", "first_token_s", "output_tokens"):
            values = frame[name].to_numpy(dtype="float64")
            bad = (values < 0) | np.isinf(values)
            if bad.any():
                raise ConfigurationError(
                    f"{source}: {name} is {values[bad][0]:g} in {bad.sum()} of {len(values)} rows; "
                    "it must be finite and not negative: check the clock that measured it, or leave such rows out"
                )
        # Clocks are read at two places: a microsecond, or a millionth, is no contradiction.
        late = (frame["first_token_s"] > frame["latency_s"] * (1 + 1e-6) + 1e-6).to_numpy()
        if late.any():
            row = frame[late].iloc[0]
            raise ConfigurationError(
                f"{source}: first_token_s ({row['first_token_s']:g} s) is longer than latency_s "
                f"({row['latency_s']:g} s) in {late.sum()} rows; both count from the request: check their units"
            )
        has_latency = frame["latency_s"].notna()
        if not has_latency.all():
            notes = (*notes, f"{(~has_latency).sum()} rows without a latency were left out.")
        return cls(frame[has_latency].reset_index(drop=True), source, notes)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{(self.frame['kind'] == kind).sum()} {kind}" for kind in ("llm", "retrieval"))
        return f"ObservedCalls of {self.source}: {kinds}; {(~self.frame['complete']).sum()} cut"

    def of_kind(self, kind: str) -> pd.DataFrame:
        """Return the rows of one kind, "llm" or "retrieval"."""
        return self.frame[self.frame["kind"] == kind]

    def levels(self, column: Literal["model", "node"]) -> list[str]:
        """Return the models, or the nodes, that model calls are of."""
        return sorted(set(self.of_kind("llm")[column]) - {""})

    def only(self, column: Literal["model", "node"], level: str | None) -> ObservedCalls:
        """Return the calls of one model and all searches, or of one node of a graph, its searches included.

        None keeps all of them, and notes if there are several models. Raises: ConfigurationError for a level that is
        not there.
        """
        levels = self.levels(column)
        if level is None:
            mixed = f"Several models are mixed: {', '.join(levels)}."
            return replace(self, notes=(*self.notes, mixed)) if column == "model" and len(levels) > 1 else self
        if level not in levels:
            choices = ", ".join(levels) or f"none; map a column to {column}"
            raise ConfigurationError(f"{self.source}: no model call is of the {column} {level!r}; there are {choices}")
        rows = self.frame[column] == level
        if column == "model":
            rows |= self.frame["kind"] != "llm"
        return replace(self, frame=self.frame[rows].reset_index(drop=True), source=f"{self.source}, {column} {level}")


def calls_of_spans(spans: Iterable[ExportedSpan], source: str, tool: str) -> ObservedCalls:
    """Return the model calls and searches of exported spans; a span around another of the same call is left out.

    source: how errors and descriptions call it. Raises: ConfigurationError (there is no model call, or a number cannot
    be).
    """
    calls, left_out = innermost([span for span in spans if span.kind in ("llm", "retrieval")])
    if not any(span.kind == "llm" for span in calls):
        raise ConfigurationError(
            f"{source}: this export of {tool} has no model call; export the spans of all kinds, model calls among them"
        )
    rows = [
        {
            "kind": span.kind,
            "complete": span.outcome == "ok" and span.ended_ns is not None,
            "latency_s": math.nan if span.ended_ns is None else (span.ended_ns - span.started_ns) / 1e9,
            "first_token_s": math.nan if span.first_ns is None else (span.first_ns - span.started_ns) / 1e9,
            "output_tokens": span.output_tokens,
            "model": span.model,
            "node": span.node,
            # A trace is one run of the user's system.
            "session": span.trace_id,
        }
        for span in calls
    ]
    notes = (f"{left_out} spans around another span of the same call were left out.",) if left_out else ()
    return ObservedCalls.of(
        {name: np.array([row[name] for row in rows]) for name in COLUMNS}, f"{source} ({tool})", notes
    )


def read_calls(source: object, columns: Mapping[str, str] | None = None, ok: Sequence[str] = ()) -> ObservedCalls:
    """Read the calls of a file or a DataFrame.

    source: a DataFrame; a .csv, .jsonl, .ndjson, .json or .parquet file; OTLP JSON, one document or one a line. An
    export of LangSmith, Langfuse or Phoenix is known by its columns. columns, ok: for tables of the user's own, as
    `calls_of_table` takes them.
    Raises: ConfigurationError naming the file or the column, and the remedy.
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, "a DataFrame", columns, ok)
    if not isinstance(source, str | os.PathLike):
        kind = type(source).__name__
        raise ConfigurationError(f"source is a {kind}: give a DataFrame, such as the calls of a study, or a file")
    path = Path(source)
    if not path.is_file():
        raise ConfigurationError(
            f"{path} cannot be read: there is no such file; in the folder of a study it is calls.parquet"
        )
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise ConfigurationError(
            f"{path} is no file that can be read: its name must end in one of {', '.join(_SUFFIXES)}"
        )
    if path.stat().st_size == 0:
        raise ConfigurationError(f"{path} is empty: give a file with a row for each call")
    if suffix != ".csv" and not columns and (calls := _from_spans(records_of(path), path.name)) is not None:
        return calls
    try:
        frame = _read_table(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except RecordError as error:
        raise ConfigurationError(str(error)) from error
    except ValueError as error:
        # pandas' and pyarrow's errors of broken files are all ValueErrors.
        first = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"{path} cannot be read as {suffix}: {first}; save it again") from error
    return _from_frame(frame, path.name, columns, ok)


def _from_frame(
    frame: pd.DataFrame, source: str, columns: Mapping[str, str] | None, ok: Sequence[str]
) -> ObservedCalls:
    if frame.empty:
        raise ConfigurationError(f"{source} has no rows: give one with a row for each call")
    calls = None if columns else _from_spans(records_of_frame(frame, source), source)
    return calls_of_table(frame, source, columns, ok) if calls is None else calls


def _from_spans(records: Iterator[Record], source: str) -> ObservedCalls | None:
    """Return the calls of an export of spans; None for records of anything else."""
    try:
        first = next(records, None)
        name = None if first is None else span_format_of(first)
        if first is None or name is None:
            return None
        spans = SPAN_FORMATS[name].spans(itertools.chain([first], records))
        return calls_of_spans(spans, source, SPAN_FORMATS[name].tool)
    except RecordError as error:
        raise ConfigurationError(str(error)) from error


def _read_table(path: Path) -> pd.DataFrame:
    if path.suffix.lower() == ".csv":
        return pd.read_csv(path)
    if path.suffix.lower() == ".parquet":
        return pd.read_parquet(path)
    with path.open(encoding="utf-8-sig") as stream:
        values = [value for _, value in json_values(stream, str(path))]
    rows = [row for value in values for row in (value if isinstance(value, list) else [value])]
    odd = next((place for place, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if odd is not None:
        raise RecordError(f"{path}: value {odd} is not an object: write one object for each call")
    return pd.DataFrame(rows)


SECONDS_PER_UNIT: Final[Mapping[str, float]] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
FIELDS: Final = (
    *("latency_s", "first_token_s", "output_tokens"),
    *("kind", "outcome", "error", "model", "node", "session"),
)
"""The fields that a column can be mapped to. A column that has the name of a field needs no mapping."""

_NUMBERS: Final = ("latency_s", "first_token_s", "output_tokens")
_COMPLETE: Final = {"ok", "success", "succeeded", "completed", "complete", "200", "true", ""}
_CUT: Final = {"timeout", "timed_out", "timedout", "cancelled", "canceled", "abandoned", "aborted", "error", "failed"}
_NO_ERROR: Final = {"", "none", "null", "nan", "false", "0", "ok"}
_KINDS: Final = {"llm": "llm", "chat": "llm", "completion": "llm", "retrieval": "retrieval", "search": "retrieval"}


def calls_of_table(
    frame: pd.DataFrame, source: str, columns: Mapping[str, str] | None = None, ok: Sequence[str] = ()
) -> ObservedCalls:
    """Return the calls of a table, one row each.

    columns: for each field (`FIELDS`) its column, with a unit after a colon where it is not seconds ("ttft_ms:ms").
    ok: the outcomes that mean a complete answer; all others then mean a cut call. When left out, usual words are
    known. Without an outcome and an error column every call is taken as complete.
    Raises: ConfigurationError naming the column that is missing, not numeric, or has an unknown word.
    """
    located = _locate_columns(frame, source, columns or {})
    if "latency_s" not in located:
        raise ConfigurationError(
            f"{source} has no column for latency_s; it has {_names(frame)}: name it, as in latency_s=duration_ms:ms"
        )
    numbers = {
        name: _numbers(frame, source, located[name]) if name in located else np.full(len(frame), np.nan)
        for name in _NUMBERS
    }
    complete = np.ones(len(frame), dtype="bool")
    notes: tuple[str, ...] = ()
    if "outcome" in located:
        complete &= _complete(
            _words(frame, located["outcome"]), source, located["outcome"], {word.lower() for word in ok}
        )
    if "error" in located:
        complete &= _words(frame, located["error"]).isin(_NO_ERROR).to_numpy()
    if not {"outcome", "error"} & located.keys():
        notes = ("No column says how a call ended, so all of them count as complete answers.",)
    kind = pd.Series("llm", index=frame.index)
    if "kind" in located:
        kind = _words(frame, located["kind"]).map(_KINDS)
    rows = kind.notna().to_numpy()
    if not rows.all():
        notes = (*notes, f"{(~rows).sum()} rows are neither llm nor retrieval and were left out.")
    result: dict[str, Any] = {**numbers, "complete": complete, "kind": kind.to_numpy()}
    for name in ("model", "node", "session"):
        texts = (
            frame[located[name]].astype("object").fillna("") if name in located else pd.Series("", index=frame.index)
        )
        result[name] = texts.astype("str").to_numpy()
    return ObservedCalls.of({name: values[rows] for name, values in result.items()}, source, notes)


def _locate_columns(frame: pd.DataFrame, source: str, columns: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(columns.keys() - set(FIELDS))
    if unknown:
        raise ConfigurationError(f"no field is called {unknown[0]!r}: columns can be mapped to {', '.join(FIELDS)}")
    for name, column in columns.items():
        if _split_unit(column)[0] not in frame:
            raise ConfigurationError(
                f"{source} has no column {column!r} (mapped to {name}); it has {_names(frame)}. "
                f"A unit follows a colon: {', '.join(SECONDS_PER_UNIT)}"
            )
    return {name: name for name in FIELDS if name in frame} | dict(columns)


def _split_unit(column: str) -> tuple[str, float]:
    """Split a column's name into the name and the seconds of its unit: "ttft_ms:ms" gives 0.001."""
    name, colon, unit = column.rpartition(":")
    return (name, SECONDS_PER_UNIT[unit]) if colon and unit in SECONDS_PER_UNIT else (column, 1.0)


def _names(frame: pd.DataFrame) -> str:
    names = [str(name) for name in frame.columns]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _numbers(frame: pd.DataFrame, source: str, column: str) -> NDArray[np.float64]:
    name, seconds = _split_unit(column)
    blank = frame[name].isna() | (frame[name].astype("str").str.strip() == "")
    values = pd.to_numeric(frame[name].mask(blank), errors="coerce").astype("float64")
    bad = values.isna() & ~blank
    if bad.any():
        raise ConfigurationError(
            f"{source}: column {name!r} has {frame[name][bad].iloc[0]!r} where a number is expected "
            f"({bad.sum()} of {len(frame)} rows): correct them or leave them blank"
        )
    # As it stands in the file, so that the message shows the number that is to be looked for.
    negative = values < 0
    if negative.any():
        raise ConfigurationError(
            f"{source}: column {name!r} is negative in {negative.sum()} of {len(frame)} rows "
            f"(first: {values[negative].iloc[0]:g}): no duration is; correct them or leave them out"
        )
    return np.asarray(values, dtype="float64") * seconds


def _words(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    # Categories first: fillna refuses a value that is none of the levels.
    return frame[column].astype("object").where(frame[column].notna(), "").astype("str").str.strip().str.lower()


def _complete(words: pd.Series[Any], source: str, column: str, ok: set[str]) -> NDArray[np.bool_]:
    if ok:
        return words.isin(ok).to_numpy()
    unknown = ~words.isin(_COMPLETE | _CUT)
    if unknown.any():
        raise ConfigurationError(
            f"{source}: column {column!r} has {words[unknown].iloc[0]!r}, which may mean a complete answer or not: "
            "say which words mean one, as in ok=('finished',) or --ok finished; all others are then calls that were cut"
        )
    return words.isin(_COMPLETE).to_numpy()
