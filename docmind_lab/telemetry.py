"""Spans and metrics of runs under their public names."""

from docmind_lab.interfaces.telemetry import Telemetry

__all__ = ["Telemetry"]
