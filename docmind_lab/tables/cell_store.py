"""A store of cells, the parts of a study: one Parquet file for each, written atomically.

    store = CellStore(folder)
    store.write("007", measured)
    store.done()                        # {"007"}
    store.read().runs                   # DataFrame

A file has one row for each run, with the run's columns and its calls and events as lists. It is written atomically, so
a file that exists can be used, and two processes that compute one cell write the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from docmind_lab.core.errors import RecordError
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.core.whole_files import write_whole
from docmind_lab.tables.frames import UNREADABLE, Tables, read_arrow, unreadable, with_dtypes, write_arrow
from docmind_lab.tables.records import TABLES, RunRows, row_of

_SUFFIX = ".parquet"
_VERSION_KEY = b"docmind_lab_schema_version"
_NESTED = ("calls", "events")
_REMEDY = "; remove that file and run the study again, which computes this cell anew"
_TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "level": pa.string(),
    "float": pa.float64(),
    "int": pa.int64(),
    "bool": pa.bool_(),
}


class CellStore:
    """A store of cells in a folder, which is made when the first cell is written.

    study_id: id of the study of the cells; cells of any other study are refused. None accepts all.
    """

    def __init__(self, folder: str | os.PathLike[str], study_id: str | None = None) -> None:
        self.folder, self.study_id = Path(folder), study_id

    def done(self) -> set[str]:
        """Return the ids of the cells in the store."""
        return {path.name.removesuffix(_SUFFIX) for path in self.folder.glob(f"[!.]*{_SUFFIX}")}

    def write(self, cell_id: str, measured: Sequence[RunRows]) -> Path:
        """Write a cell, and replace one with the same id. Raises: OSError if the file cannot be written."""
        rows = [
            row_of(item.run) | {"calls": list(map(row_of, item.calls)), "events": list(map(row_of, item.events))}
            for item in measured
        ]
        table = pa.Table.from_pylist(rows, schema=_schema())
        self.folder.mkdir(parents=True, exist_ok=True)
        return write_whole(self.folder / f"{cell_id}{_SUFFIX}", lambda path: write_arrow(table, path))

    def read(self, cell_ids: Collection[str] | None = None) -> Tables:
        """Return the tables of the given cells (default: all), ordered by run id.

        Raises: RecordError for a cell that is missing or damaged, belongs to another study, or was written by a newer
        version.
        """
        names = sorted(self.done() if cell_ids is None else cell_ids)
        table = pa.concat_tables([self._cell(name) for name in names]) if names else _schema().empty_table()
        frames = {name: _unnest(table, name) for name in _NESTED}
        runs = table.drop_columns(list(_NESTED)).to_pandas()
        return Tables(
            runs=_in_order(with_dtypes("runs", runs)),
            calls=_in_order(with_dtypes("calls", frames["calls"])),
            events=_in_order(with_dtypes("events", frames["events"])),
        )

    def remove(self) -> None:
        """Remove every cell, temporary files of interrupted writes, and the folder if it is then empty."""
        for pattern in (f"[!.]*{_SUFFIX}", f".*{_SUFFIX}.*"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        # Not looked at first: somebody else may put something there in between.
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def _cell(self, name: str) -> pa.Table:
        path = self.folder / f"{name}{_SUFFIX}"
        try:
            table = read_arrow(path)
            table.validate(full=True)
            other_studies = set(table["study_id"].unique().to_pylist()) - {self.study_id}
        except UNREADABLE as error:
            raise unreadable(path, error, _REMEDY) from error
        version = int((table.schema.metadata or {}).get(_VERSION_KEY, b"0"))
        if not 0 < version <= SCHEMA_VERSION:
            raise RecordError(
                f"cell {path} was written with schema version {version}; this package reads up to {SCHEMA_VERSION}: "
                "upgrade docmind_lab"
            )
        if self.study_id is not None and other_studies:
            others = ", ".join(map(str, other_studies))
            raise RecordError(f"{path} is a cell of study {others}, not of {self.study_id}{_REMEDY}")
        if version == SCHEMA_VERSION and not table.schema.equals(_schema()):
            raise unreadable(path, ValueError("its columns are not those of a cell"), _REMEDY)
        return table


def _schema() -> pa.Schema:
    fields = {
        name: [pa.field(column.name, _TYPES[column.kind]) for column in columns]
        for name, (_, columns) in TABLES.items()
    }
    nested = [(name, pa.list_(pa.struct(fields[name]))) for name in _NESTED]
    return pa.schema([*fields["runs"], *nested], metadata={_VERSION_KEY: str(SCHEMA_VERSION).encode()})


def _unnest(table: pa.Table, name: str) -> pd.DataFrame:
    flat = pc.list_flatten(table[name].combine_chunks())
    if isinstance(flat, pa.ChunkedArray):
        flat = flat.combine_chunks()
    frame: pd.DataFrame = pa.Table.from_struct_array(flat).to_pandas()
    return frame


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    # Rows of one run stay in the order they were written in; only the runs are sorted.
    return frame.sort_values("run_id", kind="stable", ignore_index=True) if len(frame) else frame
