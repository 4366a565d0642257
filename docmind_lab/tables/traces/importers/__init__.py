"""Readers of traces: each turns what another tool wrote into `Traces`, as a stream, and keeps no text.

export_records  the records of JSON and Parquet files, one after the other
spans           spans as tools export them, and the runs that they are of
otlp            reader of OpenTelemetry
tracing_tools   readers of LangSmith, Langfuse and Phoenix
recordings      reader of the lab's own recordings

SPAN_FORMATS names those of spans. A reader says in `Traces.notes` how many spans it used and left out, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from docmind_lab.tables.traces.importers.export_records import Record
from docmind_lab.tables.traces.importers.otlp import OTLP
from docmind_lab.tables.traces.importers.spans import SpanFormat
from docmind_lab.tables.traces.importers.tracing_tools import LANGFUSE, LANGSMITH, OPENINFERENCE

SPAN_FORMATS: Final[Mapping[str, SpanFormat]] = {
    "otlp": OTLP,
    "langsmith": LANGSMITH,
    "openinference": OPENINFERENCE,
    "langfuse": LANGFUSE,
}
"""The formats of spans by name, in the order in which a record is looked at."""


def span_format_of(record: Record) -> str | None:
    """Return the format of spans that a record is of, or None."""
    return next((name for name, each in SPAN_FORMATS.items() if each.recognises(record)), None)
