"""Exporters of spans that do not do what exporters should; import it after `opentelemetry.sdk` was found."""

from __future__ import annotations

import threading
from typing import Any

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult


class Failing(SpanExporter):
    """Raises, with a secret in the message."""

    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("http://user:secret@collector")

    def shutdown(self) -> None:
        pass


class Hanging(SpanExporter):
    """Never comes back before the test lets it."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def export(self, spans: Any) -> SpanExportResult:
        self.begun.set()
        self.released.wait()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass
