"""Readers of traces: each turns what another tool wrote into `Traces`, as a stream, and keeps no text.

records            the records of JSON, CSV and Parquet files, one after the other
spans              spans as tools export them, and the runs that they are of
otlp, tools        readers of tracing tools: OpenTelemetry; LangSmith, Langfuse and Phoenix
coding_sessions, trajectories              readers of tables of requests and steps
recordings         reader of the lab's own recordings

SPAN_FORMATS names those of spans. A reader says in `Traces.notes` how many spans it used and left out, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from docmind_lab.tables.traces.importers.otlp import is_otlp, otlp_spans
from docmind_lab.tables.traces.importers.records import Record
from docmind_lab.tables.traces.importers.spans import ExportedSpan
from docmind_lab.tables.traces.importers.tools import (
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


def span_format_of(record: Record) -> str | None:
    """Return the format of spans that a record is of, or None."""
    return next((name for name, each in SPAN_FORMATS.items() if each.recognises(record)), None)
