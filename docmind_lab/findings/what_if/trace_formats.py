"""Traces of a file or a folder, in the format that its content shows: an export, a study or a recording."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.findings.study import Study
from docmind_lab.tables.traces.importers import SPAN_FORMATS, span_format_of
from docmind_lab.tables.traces.importers.export_records import Record, records_of
from docmind_lab.tables.traces.importers.recordings import Recording, is_recording
from docmind_lab.tables.traces.importers.spans import traces_of_spans
from docmind_lab.tables.traces.trace_tables import Traces
from docmind_lab.tables.traces.traced_studies import traces_of_study

Reader = Callable[[Path], Traces]
"""Reads a file or a folder. It raises RecordError naming the first bad record with its line."""


def _read_spans(name: str, source: Path) -> Traces:
    return traces_of_spans(SPAN_FORMATS[name].spans(records_of(source)), str(source))


FORMATS: Final[Mapping[str, Reader]] = {
    "traces": Traces.read,
    "study": lambda folder: traces_of_study(Study.load(folder)),
    "recording": lambda folder: Recording.load(folder).traces(str(folder)),
    **{name: functools.partial(_read_spans, name) for name in SPAN_FORMATS},
}
"""The formats by name, with their readers."""


def import_traces(source: str | os.PathLike[str]) -> Traces:
    """Read traces from a file or folder.

    Args:
        source: The file or folder.

    Raises:
        ConfigurationError: There is no such file, or its format is not known or not read.
        RecordError: A record cannot be read; it names the line.
    """
    path = Path(source)
    if not path.exists():
        raise ConfigurationError(f"{path} is not there; name a file of traces or an export")
    return FORMATS[_recognise(path)](path)


def _is_agentops(record: Record) -> bool:
    """Whether a record is of AgentOps: a span, or a trace with its spans, with names that only its exports have."""
    trace = record.values.get("trace")
    values = Record.of(record.where, trace).values | record.values if isinstance(trace, dict) else record.values
    listed = values.get("spans")
    spans = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else [values]
    return any("span_name" in span or any(name.startswith("agentops.") for name in _names(span)) for span in spans)


def _names(span: Mapping[str, Any]) -> Iterator[str]:
    for name, value in span.items():
        yield str(name)
        if isinstance(value, Mapping):
            yield from map(str, value)


def _recognise(path: Path) -> str:
    if path.is_dir():
        if is_recording(path):
            return "recording"
        if (path / "runs.parquet").is_file() or (path / "manifest.json").is_file():
            return "study"
    first = next(iter(records_of(path)), None)
    if first is None:
        raise RecordError(f"{path} holds no record; export some runs first")
    if name := span_format_of(first):
        return name
    tool = "AgentOps" if _is_agentops(first) else "Jaeger" if "processes" in first.values else ""
    if tool:
        raise ConfigurationError(
            f"{first.where}: this is an export of {tool}, which is not read; have its spans sent to an OpenTelemetry "
            "Collector too, whose file exporter writes OTLP JSON (docs/measurements.md)"
        )
    if isinstance(first.values.get("spans"), list) and "observed_until_s" in first.values:
        return "traces"
    raise ConfigurationError(
        f"{first.where}: what this is an export of cannot be seen; the formats are {', '.join(FORMATS)}. "
        f"Its fields are {', '.join(list(first.values)[:12])}"
    )
