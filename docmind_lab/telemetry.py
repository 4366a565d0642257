"""Spans of runs under their public name."""

from docmind_lab.views.telemetry import Telemetry

__all__ = ["Telemetry"]
