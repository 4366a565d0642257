"""What is read how: a DataFrame, a CSV, JSON lines, Parquet, OTLP JSON, a study or its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from docmind_lab.analysis.latency.calls import ObservedCalls
from docmind_lab.analysis.latency.columns import calls_of_table
from docmind_lab.analysis.latency.spans import calls_of_spans, is_otlp
from docmind_lab.analysis.latency.study_calls import (
    MeasuredTables,
    calls_of_calls_table,
    calls_of_study,
    is_calls_table,
)
from docmind_lab.core.errors import ConfigurationError

Source = pd.DataFrame | str | os.PathLike[str] | MeasuredTables

_JSON: Final = (".json", ".jsonl", ".ndjson")
_TABLES: Final = ("runs", "calls", "events")


@dataclass(frozen=True, eq=False)
class _Tables:
    runs: pd.DataFrame
    calls: pd.DataFrame
    events: pd.DataFrame


def read_calls(source: Source, columns: Mapping[str, str] | None = None, ok: Sequence[str] = ()) -> ObservedCalls:
    """The calls of a source.

    source: a DataFrame; a .csv, .jsonl, .ndjson, .json or .parquet file; OTLP JSON, one document or one a line; a
    study, or the folder it is kept in. columns, ok: for tables of the user's own, as `calls_of_table` takes them.
    Raises: ConfigurationError naming the file or the column, and the remedy.
    """
    if isinstance(source, pd.DataFrame):
        return _of_frame(source, "a DataFrame", columns, ok)
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
    return _of_file(path, columns, ok)


def _of_frame(frame: pd.DataFrame, source: str, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
    if frame.empty:
        raise ConfigurationError(f"{source} has no rows: give one with a row for each call")
    if is_calls_table(frame) and not columns:
        return calls_of_calls_table(frame, source)
    return calls_of_table(frame, source, columns, ok)


def _of_file(path: Path, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet", *_JSON):
        known = ", ".join((".csv", ".parquet", *_JSON))
        raise ConfigurationError(f"{path} is no file that can be read: its name must end in one of {known}")
    try:
        if path.stat().st_size == 0:
            raise ConfigurationError(f"{path} is empty: give a file with a row for each call")
        if suffix in _JSON:
            return _of_json(path, columns, ok)
        frame = pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror or error}") from error
    except ConfigurationError:
        raise
    except (ValueError, UnicodeError) as error:
        # pandas' and pyarrow's errors of broken files are all ValueErrors.
        first = str(error).strip().splitlines()[0]
        raise ConfigurationError(f"{path} cannot be read as {suffix}: {first}; save it again") from error
    return _of_frame(frame, path.name, columns, ok)


def _of_json(path: Path, columns: Mapping[str, str] | None, ok: Sequence[str]) -> ObservedCalls:
    values = _json_values(path)
    if values and is_otlp(values[0]):
        _refuse_columns(columns, path.name)
        return calls_of_spans(values, path.name)
    rows = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    odd = next((place for place, row in enumerate(rows, start=1) if not isinstance(row, dict)), None)
    if odd is not None:
        raise ConfigurationError(f"{path}: value {odd} is not an object: write one object for each call")
    return _of_frame(pd.DataFrame(rows), path.name, columns, ok)


def _json_values(path: Path) -> list[Any]:
    """The one document of a file, or those of its lines."""
    text = path.read_text(encoding="utf-8-sig")
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        values = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            values += [json.loads(line)] if line.strip() else []
        except json.JSONDecodeError as error:
            raise ConfigurationError(
                f"{path}: line {number} is not JSON ({error.msg}); one document, or one object a line, is read"
            ) from error
    return values


def _study_in(folder: Path) -> MeasuredTables:
    missing = [name for name in _TABLES if not (folder / f"{name}.parquet").is_file()]
    if missing:
        raise ConfigurationError(
            f"{folder} has no {missing[0]}.parquet: give the folder of a finished study, or the study itself"
        )
    return _Tables(*(pd.read_parquet(folder / f"{name}.parquet") for name in _TABLES))


def _refuse_columns(columns: Mapping[str, str] | None, source: str) -> None:
    if columns:
        raise ConfigurationError(f"columns are for tables of your own; {source} says itself what its columns are")
