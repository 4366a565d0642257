"""The records of exports, one after the other: JSON, JSON lines and Parquet.

JSON lines are read a line at a time, and Parquet a batch at a time. A JSON document over several lines is read whole;
it may have 256 MiB.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from docmind_lab.core.errors import RecordError
from docmind_lab.tables.traces.trace_tables import DECODER

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".parquet")
"""How the names of files end that can be read."""

_CONTAINERS: Final = ("data", "runs")
"""Members of an outermost object that hold records: of the answers of Langfuse and Jaeger, and of LangSmith."""

# Decoded, a document takes some ten times its characters of memory.
_LONGEST_DOCUMENT: Final = 1 << 28
# Prompts stand in columns that nobody needs.
_PARQUET_ROWS: Final = 200
_SPACES: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True)
class Record:
    """One record of an export.

    where: file and line, for errors. values: its values by name; the names of the outermost level in snake_case.
    """

    where: str
    values: dict[str, Any]

    def get(self, *paths: str) -> Any:
        """Return the value at the first of these paths that has one, or None.

        paths: names joined by dots. Objects within may be written as JSON texts, or flattened into dotted names.
        """
        for path in paths:
            value = _at(self.values, path)
            if is_there(value):
                return value
        return None

    def text(self, *paths: str) -> str:
        """Return the value at the first of these paths that has one as a text; empty for none."""
        value = self.get(*paths)
        return "" if value is None else str(value)

    def number(self, *paths: str) -> float:
        """Return the value at the first of these paths that has one as a number; NaN for none.

        Raises: RecordError when it is no finite number of 0 or more.
        """
        value = self.get(*paths)
        if value is None:
            return float("nan")
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if not 0 <= number < float("inf"):
            raise RecordError(f"{self.where}: {paths[0]} must be a number, 0 or more: got {value!r:.60}")
        return number

    def required(self, name: str) -> str:
        """Return a value as a text. Raises: RecordError when it is missing."""
        text = self.text(name)
        if not text:
            raise RecordError(f"{self.where}: {name} is missing; export the records with it")
        return text

    @classmethod
    def of(cls, where: str, value: Any) -> Record:
        """Return a record with its outermost names in snake_case. Raises: RecordError when it is no object."""
        if not isinstance(value, Mapping):
            raise RecordError(f"{where}: a record must be an object, not {value!r:.60}")
        return cls(where, {_snake(str(name)): each for name, each in value.items()})


def is_there(value: Any) -> bool:
    """Whether a value is anything at all: not None, not NaN, not an empty text."""
    if value is None or (isinstance(value, str) and not value):
        return False
    # NaN and pandas' NaT are not equal to themselves; an array compares by element.
    return bool(hasattr(value, "__len__") or value == value)


def as_mapping(value: Any) -> dict[str, Any]:
    """Return an object, which may be written as a text of JSON; empty for anything else."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            value = DECODER.decode(value)
    return dict(value) if isinstance(value, Mapping) else {}


def _at(values: dict[str, Any], path: str) -> Any:
    if path in values:
        return values[path]
    parts = path.split(".")
    for place in range(len(parts) - 1, 0, -1):
        head = ".".join(parts[:place])
        if head in values:
            values[head] = inner = as_mapping(values[head])
            value = _at(inner, ".".join(parts[place:]))
            if is_there(value):
                return value
    return None


@functools.cache
def _snake(name: str) -> str:
    """The name in snake_case, where it is one word in camelCase."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower() if name.isalnum() else name


def records_of_frame(frame: pd.DataFrame, name: str) -> Iterator[Record]:
    """Yield the rows of a data frame. name: how errors call it."""
    # Phoenix has the id of a span as the index.
    rows = frame if frame.index.name is None else frame.reset_index()
    for number, values in enumerate(rows.to_dict("records"), 1):
        yield Record.of(f"{name}, row {number}", values)


# ---- files


def files_of(source: Path) -> list[Path]:
    """Return a file, or the files of a folder whose names end in one of `SUFFIXES`, by name.

    Raises: RecordError when there is none, or the name of a file ends in another way.
    """
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise RecordError(f"{source} has no file whose name ends in {', '.join(SUFFIXES)}; name one with exports")
        return files
    if source.suffix.lower() not in SUFFIXES:
        raise RecordError(
            f"{source} cannot be read: its name must end in one of {', '.join(SUFFIXES)}; unpack it if it ends in .gz, "
            "and save a table as JSON lines or Parquet"
        )
    return [source]


def records_of(source: Path) -> Iterator[Record]:
    """Yield the records of a file, or of the files of a folder.

    Raises: RecordError (a file or record cannot be read; it names the line).
    """
    for file in files_of(source):
        try:
            if file.suffix.lower() == ".parquet":
                yield from _parquet_records(file)
            else:
                with file.open(encoding="utf-8-sig") as stream:
                    for line, value in json_values(stream, str(file)):
                        yield from _records_in(value, f"{file}, line {line}")
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise RecordError(f"{file} cannot be read as {file.suffix.lower()} ({error}); save it again") from error


def _records_in(value: Any, where: str) -> Iterator[Record]:
    """Yield a record, or those of a list or of an object's member that holds records."""
    held = [value.get(name) for name in _CONTAINERS] if isinstance(value, Mapping) else [value]
    lists = [each for each in held if isinstance(each, list)]
    if not lists:
        yield Record.of(where, value)
    for number, each in enumerate((each for values in lists for each in values), 1):
        yield Record.of(f"{where}, record {number}", each)


def _parquet_records(file: Path) -> Iterator[Record]:
    with pq.ParquetFile(file) as table:
        rows = (row for batch in table.iter_batches(_PARQUET_ROWS) for row in batch.to_pylist())
        for number, values in enumerate(rows, 1):
            yield Record.of(f"{file}, row {number}", values)


def json_values(stream: TextIO, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON text with the lines that they begin on: one a line, or over several lines.

    stream: the text, read a line at a time until a value is longer than its line. Raises: RecordError (it is not JSON,
    or the rest of such a text is longer than 256 MiB; it names the line).
    """
    number = 0
    while line := stream.readline(_LONGEST_DOCUMENT):
        number += 1
        if not line.strip():
            continue
        try:
            value = DECODER.decode(line)
        except (json.JSONDecodeError, RecursionError):
            yield from _documents(line + stream.read(_LONGEST_DOCUMENT), name, number)
            return
        yield number, value


def _documents(text: str, name: str, line: int) -> Iterator[tuple[int, Any]]:
    """Yield the values of a whole text, which begins on this line of its file."""
    if len(text) > _LONGEST_DOCUMENT:
        raise RecordError(f"{name}, line {line}: a value of several lines may have 256 MiB; write one value a line")
    end, after = 0, re.match(_SPACES, text)
    while after is not None and after.end() < len(text):
        line += text.count("\n", end, after.end())
        try:
            value, end = DECODER.raw_decode(text, after.end())
        except json.JSONDecodeError as error:
            raise RecordError(f"{name}, line {line}: it is not JSON ({error.msg})") from error
        except RecursionError as error:
            raise RecordError(f"{name}, line {line}: its values are nested too deeply") from error
        yield line, value
        line += text.count("\n", after.end(), end)
        after = _SPACES.match(text, end)
