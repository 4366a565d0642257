"""Reads observed calls from a DataFrame, CSV, JSON lines, Parquet, OTLP JSON, an export of a tracing tool, a study.

Of a study the rows of its server are taken if there are any, else those of the client. The wait for a slot or a
connection is taken off: it belongs to the load, not to the latency.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.statistics.latency.observed_calls import ObservedCalls, calls_of_spans, calls_of_table
from docmind_lab.tables.frames import StudyTables, Tables
from docmind_lab.tables.traces.importers import SPAN_FORMATS, span_format_of
from docmind_lab.tables.traces.importers.export_records import Record, json_values, records_of, records_of_frame

Source = pd.DataFrame | str | os.PathLike[str] | StudyTables

_SUFFIXES: Final = (".csv", ".parquet", ".json", ".jsonl", ".ndjson")
_TABLES: Final = ("runs", "calls", "events")


def read_calls(source: Source, columns: Mapping[str, str] | None = None, ok: Sequence[str] = ()) -> ObservedCalls:
    """Read the calls of a source, such as a file, a DataFrame or a study.

    source: a DataFrame; a .csv, .jsonl, .ndjson, .json or .parquet file; OTLP JSON, one document or one a line; a
    study, or the folder that it is in. An export of LangSmith, Langfuse or Phoenix is known by its columns. columns,
    ok: for tables of the user's own, as `calls_of_table` takes them.
    Raises: ConfigurationError naming the file or the column, and the remedy.
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, "a DataFrame", columns, ok)
    if not isinstance(source, str | os.PathLike):
        if not all(hasattr(source, table) for table in _TABLES):
            kind = type(source).__name__
            raise ConfigurationError(f"source is a {kind}: give a DataFrame, a file, a study or its folder")
        return calls_of_study(source, columns)
    path = Path(source)
    if not path.exists():
        raise ConfigurationError(f"{path} cannot be read: there is no such file or folder")
    return calls_of_study(_study_in(path), columns) if path.is_dir() else _from_file(path, columns, ok)


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


def _from_file(path: Path, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
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


def _study_in(folder: Path) -> StudyTables:
    missing = [name for name in _TABLES if not (folder / f"{name}.parquet").is_file()]
    if missing:
        raise ConfigurationError(
            f"{folder} has no {missing[0]}.parquet: give the folder of a finished study, or the study itself"
        )
    return Tables(**{name: pd.read_parquet(folder / f"{name}.parquet") for name in _TABLES})


def calls_of_study(study: StudyTables, columns: Mapping[str, str] | None = None) -> ObservedCalls:
    """Return the calls of a study's three tables. columns: None, for they are known.

    The server writes when it began to generate (event tokens_generated), so a first token is known there also of
    answers that came in one piece. Elsewhere the first byte is the first token, where the rest of the answer came
    later. A call unended at the horizon was cut by it.
    Raises: ConfigurationError for a study without calls, or columns.
    """
    if columns:
        raise ConfigurationError("columns are for tables of your own; a study says itself what its columns are")
    if study.calls.empty:
        raise ConfigurationError("the study has no calls: give one whose runs called a model")
    calls = study.calls.astype({"seen_from": "str", "kind": "str", "outcome": "str", "run_id": "str"})
    is_served = calls["seen_from"] == "server"
    rows = calls[
        (is_served if is_served.any() else ~is_served)
        & calls["kind"].isin(["llm", "retrieval"])
        & (calls["outcome"] != "refused")
    ]
    waited_s = rows["queue_wait_s"].fillna(0.0)
    horizon_s = rows["run_id"].map(study.runs.set_index("run_id")["horizon_s"])
    latency_s = (rows["latency_s"] - waited_s).fillna(horizon_s - rows["started_at_s"] - waited_s)
    first_at_s = rows["first_byte_at_s"]
    if is_served.any():
        keys = pd.MultiIndex.from_frame(rows[["run_id", "call_id", "attempt"]])
        began_at_s = _generation_began_at_s(study.events).reindex(keys).to_numpy(dtype="float64")
        first_at_s = pd.Series(began_at_s, index=rows.index).fillna(first_at_s)
    first_token_s = (first_at_s - rows["started_at_s"] - waited_s).where(rows["kind"] == "llm")
    side = "the server's" if is_served.any() else "the client's"
    return ObservedCalls.of(
        {
            "kind": rows["kind"].to_numpy(),
            "complete": (rows["outcome"] == "ok").to_numpy(),
            # Subtracted instants are exact to some 1e-16 of the run's length, which may come out below 0.
            "latency_s": np.maximum(0.0, latency_s.to_numpy(dtype="float64")),
            "first_token_s": np.maximum(0.0, first_token_s.to_numpy(dtype="float64")),
            "output_tokens": rows["output_tokens"].to_numpy(dtype="float64"),
            "model": np.full(len(rows), ""),
            "session": rows["run_id"].to_numpy(),
        },
        f"the study {study.calls['study_id'].iloc[0]}",
        (f"Of the calls table {side} rows were taken, waits in queues taken off.",),
    )


def _generation_began_at_s(events: pd.DataFrame) -> pd.Series[Any]:
    """Return the instant of the first token, by (run_id, call_id, attempt)."""
    generated = events[events["event"].astype("str") == "tokens_generated"]
    details = pd.DataFrame([json.loads(text) for text in generated["detail"]], index=generated.index)
    if details.empty:
        return pd.Series(dtype="float64", index=pd.MultiIndex.from_arrays([[], [], []]))
    return details.assign(run_id=generated["run_id"]).groupby(["run_id", "call_id", "attempt"])["begun_at_s"].min()
