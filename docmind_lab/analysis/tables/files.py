"""Parquet files of tables: pages have checksums, so that a file that changed on its way is no other table."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from docmind_lab.core.errors import RecordError
from docmind_lab.core.whole_files import Write

# What pyarrow and pandas raise of files that are damaged or are none of theirs.
UNREADABLE = (OSError, pa.ArrowException, ValueError, LookupError, TypeError, OverflowError, MemoryError)


def parquet(frame: pd.DataFrame) -> Write:
    """What writes a frame as a Parquet file."""
    return lambda path: frame.to_parquet(path, index=False, write_page_checksum=True)


def write_arrow(table: pa.Table, path: str) -> None:
    """Write an Arrow table as a Parquet file."""
    pq.write_table(table, path, write_page_checksum=True)


def read_arrow(file: Path) -> pa.Table:
    """The Arrow table in a Parquet file. Raises: one of `UNREADABLE`."""
    return pq.read_table(file, page_checksum_verification=True)


def read_parquet(file: Path, remedy: str = "") -> pd.DataFrame:
    """The frame in a Parquet file.

    Args:
        file: The file.
        remedy: What the error says besides.

    Returns:
        The frame as it was written.

    Raises:
        RecordError: The file is damaged, or cannot be read.
    """
    try:
        frame: pd.DataFrame = read_arrow(file).to_pandas()
    except UNREADABLE as error:
        raise unreadable(file, error, remedy) from error
    return frame


def unreadable(file: Path, error: BaseException, remedy: str = "") -> RecordError:
    """The error of a table that cannot be read, in one line."""
    lines = str(error).strip().splitlines()
    return RecordError(f"{file} cannot be read ({lines[0] if lines else type(error).__name__}){remedy}")
