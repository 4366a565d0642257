"""Spans and metrics of runs under their public names."""

from docmind_lab.interfaces.telemetry import (
    About,
    RunTrace,
    SpanEvent,
    SpanRow,
    Telemetry,
    trace_of,
)

__all__ = ["About", "RunTrace", "SpanEvent", "SpanRow", "Telemetry", "trace_of"]
