"""Spans and metrics of runs under their public names."""

from docmind_lab.views.telemetry import Telemetry

__all__ = ["Telemetry"]
