"""The tables as DataFrames with their documented dtypes, in Parquet files, and the tables of a workload.

Pages of a Parquet file have checksums, so a file that changed on its way is not read as another table.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from docmind_lab.core.errors import RecordError
from docmind_lab.core.whole_files import Write
from docmind_lab.tables.records import DTYPES, TABLES, Column, row_of


class StudyTables(Protocol):
    """A study, or any other object with the three tables that `docmind_lab.tables` documents."""

    @property
    def runs(self) -> pd.DataFrame:
        """The table of runs, one row per run."""
        ...

    @property
    def calls(self) -> pd.DataFrame:
        """The table of calls, one row per attempt and point of view."""
        ...

    @property
    def events(self) -> pd.DataFrame:
        """The table of events, one row per event."""
        ...


@dataclass(frozen=True)
class Tables:
    """The three tables of some runs, with their documented dtypes."""

    runs: pd.DataFrame
    calls: pd.DataFrame
    events: pd.DataFrame


def to_frame(table: str, records: Iterable[Any]) -> pd.DataFrame:
    """Return a table's frame with its documented dtypes, one row per record; works for no records too."""
    record_type, columns = TABLES[table]
    rows = [row_of(record) for record in records]
    data = {column.name: [row[column.name] for row in rows] for column in columns}
    assert {field.name for field in fields(record_type)} == set(data)
    return with_dtypes(table, pd.DataFrame(data))


def with_dtypes(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the table's columns in order and their dtypes; adds columns that old tables lack.

    Raises: RecordError naming the columns that are missing.
    """
    _, columns = TABLES[table]
    if "node_colour" in frame:
        # Its name, and that of a level, until 0.1.0.
        frame = frame.rename(columns={"node_colour": "node_mode"})
        frame = frame.assign(node_mode=frame["node_mode"].astype("str").replace("blocking_async", "blocking"))
    later = {column.name: column.before for column in columns if column.since > 1 and column.name not in frame}
    frame = frame.assign(**later) if later else frame
    missing = [column.name for column in columns if column.name not in frame]
    if missing:
        raise RecordError(f"table {table} has no column {', '.join(missing)}; it was not written by this package")
    return _typed_columns(columns, frame)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, each by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def event_rows(events: pd.DataFrame, *names: str) -> list[dict[str, Any]]:
    """Return the rows of the events of these names, each with its detail as an object."""
    chosen = rows_of(events[events["event"].isin(names)])
    return [row | {"detail": json.loads(row["detail"])} for row in chosen]


def rows_by(frame: pd.DataFrame, column: str) -> dict[Any, list[dict[str, Any]]]:
    """Return the rows of a frame by their value in a column, levels as plain texts."""
    # Categoricals are slow to take apart row by row.
    plain = frame.astype(dict.fromkeys(frame.columns[frame.dtypes == "category"], "object"))
    rows: dict[Any, list[dict[str, Any]]] = {}
    for row in rows_of(plain):
        rows.setdefault(row[column], []).append(row)
    return rows


def rows_to_frame(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as a frame with columns in order and dtypes; works for no rows. A level may be missing."""
    return _typed_columns(columns, pd.DataFrame(rows, columns=[column.name for column in columns]))


def blank_row(columns: Sequence[Column]) -> dict[str, Any]:
    """Return a row in which nothing is known yet: NaN, 0, false or an empty text."""
    blanks = {"float": np.nan, "int": 0, "bool": False}
    return {column.name: blanks.get(column.kind, "") for column in columns}


def _typed_columns(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    typed = {column.name: _typed_column(frame[column.name], column).array for column in columns}
    return pd.DataFrame(typed, index=frame.index)


def _typed_column(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    if column.kind == "level" and isinstance(values.dtype, pd.CategoricalDtype):
        if column.levels == tuple(values.cat.categories) and not values.cat.ordered:
            return values
        # As files hold them. Only the few levels are looked at, and the rows take over their numbers.
        used = values.cat.remove_unused_categories()
        named = used.cat.rename_categories([str(level) for level in used.cat.categories]).cat.as_unordered()
        return named.cat.set_categories(list(column.levels) or sorted(named.cat.categories))
    if column.kind == "level":
        text = values if values.dtype == _TYPES["text"] else values.astype(_TYPES["text"])
        return text.astype(_categories(column.levels or tuple(sorted(text.dropna().unique()))))
    dtype = _TYPES[column.kind]
    return values if values.dtype == dtype else values.astype(dtype)


# Looked up once: a table has up to 55 columns, and pandas takes long to find a dtype by its name.
_TYPES: Final[Mapping[str, Any]] = {kind: pd.api.types.pandas_dtype(name) for kind, name in DTYPES.items()}


@functools.lru_cache(maxsize=128)
def _categories(levels: tuple[str, ...]) -> pd.CategoricalDtype:
    return pd.CategoricalDtype(list(levels))


def positive_part(value: float) -> float:
    """Return max(0, value); NaN stays NaN."""
    return value if np.isnan(value) else max(0.0, value)


# What pyarrow and pandas raise of files that are damaged or are none of theirs.
UNREADABLE = (OSError, pa.ArrowException, ValueError, LookupError, TypeError, OverflowError, MemoryError)


def parquet(frame: pd.DataFrame) -> Write:
    """Return a function that writes a frame to a Parquet file."""
    return lambda path: frame.to_parquet(path, index=False, write_page_checksum=True)


def write_arrow(table: pa.Table, path: str) -> None:
    """Write an Arrow table to a Parquet file."""
    pq.write_table(table, path, write_page_checksum=True)


def read_arrow(file: Path) -> pa.Table:
    """Read an Arrow table from a Parquet file. Raises: one of `UNREADABLE`."""
    return pq.read_table(file, page_checksum_verification=True)


def read_parquet(file: Path, remedy: str = "") -> pd.DataFrame:
    """Read a frame from a Parquet file.

    remedy: text that is added to the error. Raises: RecordError (the file is damaged, or cannot be read).
    """
    try:
        frame: pd.DataFrame = read_arrow(file).to_pandas()
    except UNREADABLE as error:
        raise unreadable(file, error, remedy) from error
    return frame


def unreadable(file: Path, error: BaseException, remedy: str = "") -> RecordError:
    """Return the error for a table that cannot be read, in one line."""
    lines = str(error).strip().splitlines()
    return RecordError(f"{file} cannot be read ({lines[0] if lines else type(error).__name__}){remedy}")


ELSEWHERE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""The form of the name of a workload from another package: "module:ATTRIBUTE"."""


@dataclass(frozen=True)
class ExtraTable:
    """A further table that a workload adds to the three.

    columns: in order. derive: (events, runs, calls) of a study → the table's frame, from these alone.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    derive: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], pd.DataFrame]


def not_imported(names: Iterable[str], trusted: Collection[str] | None) -> tuple[str, ...]:
    """Return the workloads of other packages whose modules are not imported, in order.

    Importing a module runs its code, and the names come from data, such as a manifest.

    names: workloads, as a manifest names them. trusted: workloads of other packages that may be imported; None for all.
    """
    if trusted is None:
        return ()
    return tuple(name for name in names if ELSEWHERE.fullmatch(name) and name not in trusted)
