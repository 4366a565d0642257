"""The records of exports, one after the other: JSON, JSON lines, CSV and Parquet, also compressed with gzip.

A file is read a piece at a time. No more of it is in memory than a piece and one record, or one batch of Parquet.
JSON is decoded here rather than by a library for streams, such as ijson, because those do not say the line of a record.
"""

from __future__ import annotations

import ast
import csv
import functools
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from docmind_lab.core.errors import RecordError
from docmind_lab.tables.traces.trace_tables import DECODER

SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".csv", ".parquet")
"""How the names of files end that can be read; `.gz` may follow all but the last."""

_CONTAINERS: Final = ("resourceSpans", "batches", "data", "runs")
"""Members of an outermost object that hold records: of OTLP, Tempo, the answers of Jaeger and Langfuse, LangSmith."""

_PIECE: Final = 1 << 16
_PARQUET_ROWS: Final = 1_000
# A text that ends in the middle of a number, a word or an escape is wrong so many characters before its end.
_WORD: Final = 20
# Prompts stand in cells; the csv module's own limit is 128 KiB.
_LONGEST_CELL: Final = (1 << 31) - 1


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

    def required_number(self, name: str) -> float:
        """Return a value as a number. Raises: RecordError when it is missing, or is no number of 0 or more."""
        self.required(name)
        return self.number(name)

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
    """Return an object, which may be written as a text of JSON or Python; empty for anything else.

    pandas writes the dictionaries of a data frame into CSV as Python does.
    """
    if isinstance(value, str) and value.lstrip().startswith("{"):
        for reads in (DECODER.decode, ast.literal_eval):
            try:
                value = reads(value)
                break
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
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
    for number, values in enumerate(frame.to_dict("records"), 1):
        yield Record.of(f"{name}, row {number}", values)


# ---- files


def files_of(source: Path) -> list[Path]:
    """Return a file, or the files of a folder whose names end in one of `SUFFIXES`, by name.

    Raises: RecordError when there is none, or the name of a file ends in another way.
    """
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if _suffix(file) in SUFFIXES and file.is_file())
        if not files:
            raise RecordError(f"{source} has no file whose name ends in {', '.join(SUFFIXES)}; name one with exports")
        return files
    if _suffix(source) not in SUFFIXES:
        raise RecordError(f"{source} cannot be read: its name must end in one of {', '.join(SUFFIXES)} (or .gz)")
    return [source]


def records_of(source: Path, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Record]:
    """Yield the records of a file, or of the files of a folder.

    wanted: whether a column of a Parquet file is read; those that hold text need not be. Raises: RecordError (a file or
    record cannot be read; it names the line).
    """
    for file in files_of(source):
        try:
            if _suffix(file) == ".parquet":
                yield from _parquet_records(file, wanted)
            else:
                with open_text(file) as stream:
                    yield from records_in(stream, str(file), is_table=_suffix(file) == ".csv")
        except (OSError, EOFError, UnicodeDecodeError, zlib.error, pa.ArrowException) as error:
            raise RecordError(f"{file} cannot be read as {_suffix(file)} ({error}); save it again") from error


def records_in(stream: TextIO, name: str, *, is_table: bool) -> Iterator[Record]:
    """Yield the records of an open file.

    stream: the open file; of a table it must have been opened with newline="". is_table: whether it is a CSV table;
    otherwise it is JSON, one document or several. Raises: RecordError (a record cannot be read; it names the line).
    """
    if is_table:
        yield from _csv_records(stream, name)
        return
    for line, value in json_values(stream, name):
        yield Record.of(f"{name}, line {line}", value)


def open_text(file: Path) -> TextIO:
    """Open a text file, also one that gzip compressed."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _suffix(file: Path) -> str:
    return (Path(file.stem) if file.suffix == ".gz" else file).suffix.lower()


def _csv_records(stream: Iterable[str], name: str) -> Iterator[Record]:
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(stream, strict=True)
    try:
        header = [_snake(each) for each in next(reader, [])]
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise RecordError(
                    f"{name}, line {reader.line_num}: {len(row)} cells, where the header has {len(header)}"
                )
            yield Record(f"{name}, line {reader.line_num}", dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise RecordError(f"{name}, line {reader.line_num}: it is not CSV ({error})") from error


def _parquet_records(file: Path, wanted: Callable[[str], bool]) -> Iterator[Record]:
    with pq.ParquetFile(file) as table:
        names = [name for name in table.schema_arrow.names if wanted(name)]
        row = 0
        for batch in table.iter_batches(batch_size=_PARQUET_ROWS, columns=names):
            for values in batch.to_pylist():
                row += 1
                yield Record.of(f"{file}, row {row}", values)


# ---- JSON


def json_values(stream: TextIO, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON text with their lines: of lists, and of `_CONTAINERS`, the elements.

    stream: the text, one document or several, one a line or over several lines. Raises: RecordError (it is not JSON; it
    names the line).
    """
    text = _JsonText(stream, name)
    while char := text.peek():
        if char == "[":
            yield from text.elements()
        elif char == "{":
            yield from text.members()
        else:
            yield text.value()


class _JsonText:
    """A JSON text, decoded as it is read."""

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._text, self._at, self._line, self._is_whole = "", 0, 1, False

    def peek(self) -> str:
        """Return the next character that is no space; empty at the end."""
        while True:
            match = _SPACES.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def value(self) -> tuple[int, Any]:
        """Return the next value with its line."""
        self.peek()
        line = self._line_here()
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                may_go_on = error.msg.startswith("Unterminated string") or error.pos > len(self._text) - _WORD
                if may_go_on and self._read():
                    continue
                raise RecordError(f"{self._name}, line {line}: it is not JSON ({error.msg})") from error
            except RecursionError as error:
                raise RecordError(f"{self._name}, line {line}: its values are nested too deeply") from error
            # A number may go on in the next piece.
            if end < len(self._text) or not self._read():
                self._at = end
                return line, value

    def elements(self) -> Iterator[tuple[int, Any]]:
        """Yield the elements of the list that begins here."""
        for _ in self._places("]"):
            yield self.value()

    def members(self) -> Iterator[tuple[int, Any]]:
        """Yield the object that begins here, or the elements of its members that are containers."""
        line, rest, has_container = self._line_here(), dict[str, Any](), False
        for _ in self._places("}"):
            _, key = self.value()
            self._expect(self.peek(), ":")
            if key in _CONTAINERS and self.peek() == "[":
                has_container = True
                yield from self.elements()
            else:
                rest[str(key)] = self.value()[1]
        if not has_container:
            yield line, rest

    def _places(self, end: str) -> Iterator[None]:
        """Yield at each place of the list or object that begins here, up to its end."""
        self._at += 1
        is_first = True
        while (char := self.peek()) != end:
            if not is_first:
                self._expect(char, ",")
            yield
            is_first = False
        self._at += 1

    def _expect(self, char: str, expectation: str) -> None:
        if char != expectation:
            raise RecordError(
                f"{self._name}, line {self._line_here()}: it is not JSON ({expectation!r} expected, not {char!r})"
            )
        self._at += 1

    def _line_here(self) -> int:
        return self._line + self._text.count("\n", 0, self._at)

    def _read(self) -> bool:
        """Read on: as much again as there is of the value, so that a long one is not decoded many times."""
        if self._is_whole:
            return False
        self._line = self._line_here()
        self._text = self._text[self._at :]
        self._at = 0
        piece = self._stream.read(max(_PIECE, len(self._text)))
        self._is_whole = not piece
        self._text += piece
        return bool(piece)


_SPACES: Final = re.compile(r"[ \t\r\n]*")
