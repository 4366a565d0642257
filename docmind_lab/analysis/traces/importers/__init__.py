"""Readers of traces: each turns what another tool wrote into `Traces`, as a stream, and keeps no text.

    import_traces("traces.jsonl")           # written by Traces.write
    import_traces("results/monday")         # a study, or a recording: the runs of its control
    import_traces("spans.jsonl.gz")         # an export, recognised by what is in it

records            the records of JSON, CSV and Parquet files, one after the other
spans              spans as tools export them, and the runs that they are of
otlp, tools        readers of tracing tools: OpenTelemetry; LangSmith, Langfuse and Phoenix
coding_sessions, trajectories              readers of tables of requests and steps
recordings         reader of the lab's own recordings

FORMATS names them. A reader says in `Traces.notes` how many spans it used and left out, and why.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from docmind_lab.analysis.study_folder import load
from docmind_lab.analysis.traces.importers.coding_sessions import is_coding_sessions, read_coding_sessions
from docmind_lab.analysis.traces.importers.otlp import is_otlp, otlp_spans
from docmind_lab.analysis.traces.importers.recordings import is_recording, read_recording
from docmind_lab.analysis.traces.importers.records import Record, records_of
from docmind_lab.analysis.traces.importers.spans import ExportedSpan, Success, traces_of_spans
from docmind_lab.analysis.traces.importers.tools import (
    is_langfuse,
    is_langsmith,
    is_openinference,
    langfuse_spans,
    langsmith_spans,
    openinference_spans,
    wanted_langfuse,
    wanted_langsmith,
    wanted_openinference,
)
from docmind_lab.analysis.traces.importers.trajectories import is_trajectories, read_trajectories
from docmind_lab.analysis.traces.model import Traces
from docmind_lab.analysis.traces.studies import traces_of_study
from docmind_lab.core.errors import ConfigurationError, RecordError


@dataclass(frozen=True)
class SpanFormat:
    """A format of spans, which a latency profile can be fitted to as well.

    recognises: whether a record is of this format. wanted: whether a column of a Parquet file is read.
    """

    tool: str
    recognises: Callable[[Record], bool]
    spans: Callable[[Iterable[Record]], Iterator[ExportedSpan]]
    wanted: Callable[[str], bool] = lambda column: True


SPAN_FORMATS: Final[Mapping[str, SpanFormat]] = {
    "otlp": SpanFormat("OpenTelemetry", is_otlp, otlp_spans),
    "langsmith": SpanFormat("LangSmith", is_langsmith, langsmith_spans, wanted_langsmith),
    "openinference": SpanFormat("OpenInference", is_openinference, openinference_spans, wanted_openinference),
    "langfuse": SpanFormat("Langfuse", is_langfuse, langfuse_spans, wanted_langfuse),
}
"""The formats of spans by name, in the order in which a record is looked at."""

Reader = Callable[[Path], Traces]
"""Reads a file or a folder. It raises RecordError naming the first bad record with its line."""


def _read_spans(name: str, source: Path, success: Success | None = None) -> Traces:
    each = SPAN_FORMATS[name]
    return traces_of_spans(each.spans(records_of(source, each.wanted)), str(source), success)


FORMATS: Final[Mapping[str, Reader]] = {
    "traces": Traces.read,
    "study": lambda folder: traces_of_study(load(folder)),
    "recording": read_recording,
    **{name: functools.partial(_read_spans, name) for name in SPAN_FORMATS},
    "coding-sessions": lambda source: read_coding_sessions(records_of(source), str(source)),
    "trajectories": lambda source: read_trajectories(records_of(source), str(source)),
}
"""The formats by name, with their readers."""


def import_traces(source: str | os.PathLike[str], format_name: str | None = None, success: str | None = None) -> Traces:
    """Read traces from a file or folder.

    Args:
        source: The file or folder.
        format_name: One of `FORMATS`; None recognises it.
        success: The score of a tracing tool that says whether a run was good, "correct" or "quality>=4"; None where
            the runs say so themselves, or nobody does.

    Raises:
        ConfigurationError: There is no such file, its format is not known, or no run has that score.
        RecordError: A record cannot be read; it names the line.
    """
    path = Path(source)
    if not path.exists():
        raise ConfigurationError(f"{path} is not there; name a file of traces or an export")
    name = format_name or _recognise(path)
    if name not in FORMATS:
        raise ConfigurationError(f"--format must be one of {', '.join(FORMATS)}, not {name!r}")
    if success is None:
        return FORMATS[name](path)
    if name not in SPAN_FORMATS:
        raise ConfigurationError(f"--success names a score of a tracing tool, and {path} is of the format {name}")
    return _read_spans(name, path, Success.parse(success))


def span_format_of(record: Record) -> str | None:
    """Return the format of spans that a record is of, or None."""
    return next((name for name, each in SPAN_FORMATS.items() if each.recognises(record)), None)


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
    tables = {"coding-sessions": is_coding_sessions, "trajectories": is_trajectories}
    name = span_format_of(first) or next((name for name, is_it in tables.items() if is_it(first)), None)
    if name:
        return name
    if _is_agentops(first):
        raise ConfigurationError(
            f"{first.where}: this is an export of AgentOps, which is not read; have its SDK send its spans to an "
            "OpenTelemetry Collector too, whose file exporter writes OTLP JSON (docs/traces.md)"
        )
    if isinstance(first.values.get("spans"), list) and "observed_until_s" in first.values:
        return "traces"
    raise ConfigurationError(
        f"{first.where}: what this is an export of cannot be seen; name it with --format ({', '.join(FORMATS)}). "
        f"Its fields are {', '.join(list(first.values)[:12])}"
    )
