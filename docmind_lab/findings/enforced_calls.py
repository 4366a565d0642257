"""Reads the enforced calls of production, as a table of runs, from spans that OpenTelemetry's collector wrote.

The collector's file exporter writes OTLP JSON, one document a line. An enforced call is a span of
`docmind_lab.alternatives.enforcement.call_telemetry`. Source: OpenTelemetry Protocol File Exporter (in development,
2026).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.telemetry_names import (
    INVOKE_WORKFLOW,
    OPERATION,
    REMAINING_AT_START,
    REQUESTS_CUT,
    RUN_ATTRIBUTES,
    THREADS_RUNNING,
    WORKFLOW,
)
from docmind_lab.tables.frames import blank_row
from docmind_lab.tables.records import TABLES
from docmind_lab.tables.traces.importers.export_records import Record, files_of, records_of
from docmind_lab.tables.traces.importers.otlp import attributes_of, plain_spans

# Column → the attribute of the span, and what stands for one that is missing; None where a call must have it.
_COLUMNS: Final[Mapping[str, tuple[str, str | float | None]]] = {
    "workload": (WORKFLOW, ""),
    "alternative": (RUN_ATTRIBUTES["alternative"], None),
    "alternative_options": (RUN_ATTRIBUTES["alternative_options"], "{}"),
    "outcome": (RUN_ATTRIBUTES["outcome"], None),
    "stop_reason": (RUN_ATTRIBUTES["stop_reason"], ""),
    "decision_timeout_s": (REMAINING_AT_START, None),
    "caller_overrun_s": (RUN_ATTRIBUTES["caller_overrun_s"], None),
    "requests_cut": (REQUESTS_CUT, 0.0),
    "threads_left": (THREADS_RUNNING, 0.0),
}
_NUMBERS: Final = ("decision_timeout_s", "caller_overrun_s", "requests_cut", "threads_left")


def read_enforced_calls(paths: Iterable[str | os.PathLike[str]]) -> pd.DataFrame:
    """Return the enforced calls in files of spans as a table of runs, one row a call.

    A span that is in two files is one call. Spans of anything else are passed over, those of the lab's own runs too.
    A last line that the collector has not finished is passed over.

    Args:
        paths: Files of OTLP JSON, or folders of them.

    Returns:
        The columns of `runs`, blank where a span does not say it. decision_timeout_s is what was left when the call
        began, seconds; workload is the name of the graph. One column more: requests_cut, a count.

    Raises:
        ConfigurationError: A file is not there or cannot be read, or none has an enforced call.
    """
    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    files: list[Path] = []
    try:
        for path in map(Path, paths):
            if not path.exists():
                raise ConfigurationError(f"{path} cannot be read: there is no such file or folder")
            files += files_of(path)
        for file in files:
            for span in (span for record in _whole_records(file) for span in plain_spans(record)):
                row = _call_of(span, str(file))
                if row is not None:
                    rows[(span.get("traceId"), span.get("spanId"))] = row
    except RecordError as error:
        raise ConfigurationError(str(error)) from error
    if not rows:
        named = ", ".join(map(str, files[:3])) + (" …" if len(files) > 3 else "")
        raise ConfigurationError(
            f"no span of an enforced call is in {named}; give enforce() on_result=CallTelemetry('name'), and its spans"
        )
    return runs_of_calls(rows.values())


def runs_of_calls(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return calls as a table of runs. rows: what is known of each call, by the names of columns."""
    calls = pd.DataFrame([{**blank_row(TABLES["runs"][1]), **row} for row in rows])
    is_in_time = (calls["outcome"] == "answered") & (calls["caller_overrun_s"] <= 0.0)
    return calls.assign(answered_in_time=is_in_time)


def _whole_records(file: Path) -> Iterator[Record]:
    """Yield the records of a file, without a last line that is still being written."""
    try:
        yield from records_of(file)
    except RecordError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise
        with file.open(encoding="utf-8-sig") as lines:
            *_, (number, last) = enumerate(lines, start=1)
        if number == 1 or last.endswith("\n") or f"line {number}:" not in str(error):
            raise


def _call_of(span: Mapping[str, Any], source: str) -> dict[str, Any] | None:
    """Return the row of a span; None for one of anything but an enforced call."""
    try:
        attributes = attributes_of(span.get("attributes"))
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{source}: a span's attributes cannot be read; give OTLP JSON") from error
    if attributes.get(OPERATION) != INVOKE_WORKFLOW or REMAINING_AT_START not in attributes:
        return None
    row: dict[str, Any] = {}
    for column, (name, otherwise) in _COLUMNS.items():
        value = attributes.get(name, otherwise)
        if value is None:
            raise ConfigurationError(
                f"{source}: a call's span has no {name}; a processor of the collector may remove it"
            )
        try:
            row[column] = float(value) if column in _NUMBERS else str(value)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"{source}: {name} of a call is {value!r}, not a number; write it again"
            ) from error
    return row
