"""Reads observed calls from a DataFrame, CSV, JSON lines, Parquet, OTLP JSON, an export of a tracing tool, a study.

Of a study the rows of its server are taken if there are any, else those of the client. The wait for a slot or a
connection is taken off: it belongs to the load, not to the latency.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.statistics.latency.observed_calls import ObservedCalls, calls_of_spans, calls_of_table
from docmind_lab.tables.frames import StudyTables, Tables
from docmind_lab.tables.traces.importers import SPAN_FORMATS, span_format_of
from docmind_lab.tables.traces.importers.export_records import (
    Record,
    json_values,
    open_text,
    records_of,
    records_of_frame,
)

Source = pd.DataFrame | str | os.PathLike[str] | StudyTables

Wanted = Callable[[str], bool]
"""Whether a column of a Parquet file is read."""

_JSON: Final = (".json", ".jsonl", ".ndjson")
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
        if not all(isinstance(getattr(source, name, None), pd.DataFrame) for name in _TABLES):
            raise ConfigurationError(
                f"source is a {type(source).__name__}: give a DataFrame, a file, a study or its folder"
            )
        _refuse_columns(columns, "a study")
        return calls_of_study(source)
    path = Path(source)
    if not path.exists():
        raise ConfigurationError(f"{path} cannot be read: there is no such file or folder")
    if path.is_dir():
        _refuse_columns(columns, path.name)
        return calls_of_study(_study_in(path))
    return _from_file(path, columns, ok)


def _from_frame(
    frame: pd.DataFrame, source: str, columns: Mapping[str, str] | None, ok: Sequence[str]
) -> ObservedCalls:
    if frame.empty:
        raise ConfigurationError(f"{source} has no rows: give one with a row for each call")
    if not columns and (calls := _from_spans(lambda wanted: records_of_frame(frame, source), source)) is not None:
        return calls
    if is_calls_table(frame) and not columns:
        return calls_of_calls_table(frame, source)
    return calls_of_table(frame, source, columns, ok)


def _from_spans(records: Callable[[Wanted], Iterator[Record]], source: str) -> ObservedCalls | None:
    """Return the calls of an export of spans; None for records of anything else."""
    try:
        first = next(records(lambda column: True), None)
        name = None if first is None else span_format_of(first)
        if name is None:
            return None
        of_tool = SPAN_FORMATS[name]
        return calls_of_spans(of_tool.spans(records(of_tool.wanted)), source, of_tool.tool)
    except RecordError as error:
        raise ConfigurationError(str(error)) from error


def _from_file(path: Path, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", *_JSON):
        endings = ", ".join((".csv", ".parquet", *_JSON))
        raise ConfigurationError(f"{path} is no file that can be read: its name must end in one of {endings}")
    try:
        if path.stat().st_size == 0:
            raise ConfigurationError(f"{path} is empty: give a file with a row for each call")
        if not columns and (calls := _from_spans(functools.partial(records_of, path), path.name)) is not None:
            return calls
        if suffix in _JSON:
            return _from_json(path, columns, ok)
        frame = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except RecordError as error:
        raise ConfigurationError(str(error)) from error
    except ConfigurationError:
        raise
    except (ValueError, UnicodeError) as error:
        # pandas' and pyarrow's errors of broken files are all ValueErrors.
        first = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"{path} cannot be read as {suffix}: {first}; save it again") from error
    return _from_frame(frame, path.name, columns, ok)


def _from_json(path: Path, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
    with open_text(path) as stream:
        rows = [row for _, row in json_values(stream, str(path))]
    odd = next((place for place, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if odd is not None:
        raise ConfigurationError(f"{path}: value {odd} is not an object: write one object for each call")
    return _from_frame(pd.DataFrame(rows), path.name, columns, ok)


def _study_in(folder: Path) -> StudyTables:
    missing = [name for name in _TABLES if not (folder / f"{name}.parquet").is_file()]
    if missing:
        raise ConfigurationError(
            f"{folder} has no {missing[0]}.parquet: give the folder of a finished study, or the study itself"
        )
    return Tables(**{name: pd.read_parquet(folder / f"{name}.parquet") for name in _TABLES})


def _refuse_columns(columns: Mapping[str, str] | None, source: str) -> None:
    if columns:
        raise ConfigurationError(f"columns are for tables of your own; {source} says itself what its columns are")


_MARKS: Final = {"seen_from", "queue_wait_s", "first_byte_at_s", "started_at_s", "latency_s", "outcome", "kind"}


def is_calls_table(frame: pd.DataFrame) -> bool:
    """Whether a frame has the columns of the table `calls`."""
    return set(frame.columns) >= _MARKS


def calls_of_study(study: StudyTables) -> ObservedCalls:
    """Return the calls of a study's three tables.

    The server writes when it began to generate (event tokens_generated), so a first token is known there also of
    answers that came in one piece. A call unended at the horizon was cut by it.
    Raises: ConfigurationError for a study without calls.
    """
    if study.calls.empty:
        raise ConfigurationError("the study has no calls: give one whose runs called a model")
    source = f"the study {study.calls['study_id'].iloc[0]}"
    horizon_s = study.runs.set_index("run_id")["horizon_s"]
    return calls_of_calls_table(study.calls, source, horizon_s, _generation_began_at_s(study.events))


def calls_of_calls_table(
    calls: pd.DataFrame,
    source: str,
    horizon_s: pd.Series[Any] | None = None,
    generation_began_at_s: pd.Series[Any] | None = None,
) -> ObservedCalls:
    """Return the calls of a calls table, with its runs' horizons and first tokens where they are given.

    generation_began_at_s: by (run_id, call_id, attempt). Without it the first byte is the first token, where the rest
    of the answer came later.
    """
    served = calls["seen_from"].astype("str") == "server"
    kind, outcome = calls["kind"].astype("str"), calls["outcome"].astype("str")
    rows = calls[(served if served.any() else ~served) & kind.isin(["llm", "retrieval"]) & (outcome != "refused")]
    side = "the server's" if served.any() else "the client's"
    waited_s = rows["queue_wait_s"].fillna(0.0)
    latency_s = rows["latency_s"] - waited_s
    if horizon_s is not None:
        latency_s = latency_s.fillna(rows["run_id"].map(horizon_s) - rows["started_at_s"] - waited_s)
    first_at_s = rows["first_byte_at_s"]
    if generation_began_at_s is not None and served.any():
        keys = pd.MultiIndex.from_frame(rows[["run_id", "call_id", "attempt"]])
        began_at_s = pd.Series(generation_began_at_s.reindex(keys).to_numpy(dtype="float64"), index=rows.index)
        first_at_s = began_at_s.fillna(first_at_s)
    llm = rows["kind"].astype("str") == "llm"
    return ObservedCalls.of(
        {
            "kind": rows["kind"].astype("str").to_numpy(),
            "complete": (rows["outcome"].astype("str") == "ok").to_numpy(),
            # Subtracted instants are exact to some 1e-16 of the run's length, which may come out below 0.
            "latency_s": np.maximum(0.0, latency_s.to_numpy(dtype="float64")),
            "first_token_s": np.maximum(0.0, (first_at_s - rows["started_at_s"] - waited_s).where(llm).to_numpy()),
            "output_tokens": rows["output_tokens"].to_numpy(dtype="float64"),
            "model": np.full(len(rows), ""),
            "session": rows["run_id"].astype("str").to_numpy(),
        },
        source,
        (f"Of the calls table {side} rows were taken, waits in queues taken off.",),
    )


def _generation_began_at_s(events: pd.DataFrame) -> pd.Series[Any]:
    """Return the instant of the first token, by (run_id, call_id, attempt)."""
    generated = events[events["event"].astype("str") == "tokens_generated"]
    details = pd.DataFrame([json.loads(text) for text in generated["detail"]], index=generated.index)
    if details.empty:
        return pd.Series(dtype="float64", index=pd.MultiIndex.from_arrays([[], [], []]))
    return details.assign(run_id=generated["run_id"]).groupby(["run_id", "call_id", "attempt"])["begun_at_s"].min()
