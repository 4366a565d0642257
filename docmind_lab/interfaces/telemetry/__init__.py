"""Spans and metrics of runs: off by default, best-effort, and never with text of a user.

spans.py        a measured run as spans, by the GenAI conventions of OpenTelemetry
tracing.py      spans handed to an exporter; OTLP by the usual environment variables
metrics.py      runs and calls counted on an OpenTelemetry meter
sources.py      a query to a coordinator as a measured run
exporter.py     both after the last run, so that nothing is disturbed; what fails or hangs is left behind

OpenTelemetry comes with the extra "telemetry" and is imported when spans or metrics are asked for.
"""

from docmind_lab.interfaces.telemetry.exporter import Telemetry

__all__ = ["Telemetry"]
