"""Spans and metrics of runs: off by default, best-effort, and never with text of a user.

run_spans.py  a measured run as spans, by the GenAI conventions of OpenTelemetry, and an exporter that takes them
metrics.py    runs and calls counted on an OpenTelemetry meter
exporter.py   both after the last run, or a query, so that nothing is disturbed; what fails or hangs is left behind

OpenTelemetry comes with the extra "telemetry" and is imported when spans or metrics are asked for.
"""

from docmind_lab.views.telemetry.exporter import Telemetry

__all__ = ["Telemetry"]
