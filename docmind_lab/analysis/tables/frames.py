"""The tables as DataFrames: one row for each record, with the documented dtypes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.analysis.tables.columns import DTYPES, TABLES, Column
from docmind_lab.core.errors import RecordError


def to_frame(table: str, records: Iterable[Any]) -> pd.DataFrame:
    """A table's frame with its documented dtypes, one row per record; also for no records at all."""
    record_type, columns = TABLES[table]
    rows: Sequence[Any] = list(records)
    data = {column.name: [getattr(row, column.name) for row in rows] for column in columns}
    assert {field.name for field in fields(record_type)} == set(data)
    return typed(table, pd.DataFrame(data))


def typed(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the table's columns in order and their dtypes; columns that came later filled up in older ones.

    Raises: RecordError naming the columns that are missing.
    """
    _, columns = TABLES[table]
    later = {column.name: column.before for column in columns if column.since > 1 and column.name not in frame}
    frame = frame.assign(**later) if later else frame
    missing = [column.name for column in columns if column.name not in frame]
    if missing:
        raise RecordError(f"table {table} has no column {', '.join(missing)}; it was not written by this package")
    return _typed_columns(columns, frame)


def typed_rows(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame of these rows, columns in order and with their dtypes; also for no rows. A level may be missing."""
    return _typed_columns(columns, pd.DataFrame(rows, columns=[column.name for column in columns]))


def _typed_columns(columns: Sequence[Column], frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({column.name: _typed_column(frame[column.name], column) for column in columns})


def _typed_column(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    if column.kind == "level" and isinstance(values.dtype, pd.CategoricalDtype):
        # As files hold them. Only the few levels are looked at, and the rows take over their numbers.
        used = values.cat.remove_unused_categories()
        named = used.cat.rename_categories([str(level) for level in used.cat.categories]).cat.as_unordered()
        return named.cat.set_categories(list(column.levels) or sorted(named.cat.categories))
    if column.kind == "level":
        text = values.astype("str")
        levels = list(column.levels) or sorted(text.dropna().unique())
        return pd.Series(pd.Categorical(text, categories=levels), index=values.index)
    return values.astype(DTYPES[column.kind])  # type: ignore[call-overload,no-any-return]


def positive_part(value: float) -> float:
    """max(0, value); NaN stays NaN."""
    return value if np.isnan(value) else max(0.0, value)
