"""Spans of runs: off by default, best-effort, and never with text of a user.

run_spans.py  a measured run as spans, by the GenAI conventions of OpenTelemetry, and an exporter that takes them

OpenTelemetry comes with the extra "telemetry" and is imported when spans are asked for. Metrics are of calls in
production (`docmind_lab.alternatives.enforcement.call_telemetry`): a study has its tables.
"""

from docmind_lab.views.telemetry.run_spans import Telemetry

__all__ = ["Telemetry"]
