"""Recordings under their public names."""

from docmind_lab.experiments.recordings import Caps, RecordedCall, RecordedRun, Recording

__all__ = ["Caps", "RecordedCall", "RecordedRun", "Recording"]
