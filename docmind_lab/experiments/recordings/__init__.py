"""Recordings of live studies, their replay in virtual time, and caps on what a live study may send.

caps.py       the most requests and tokens that a study may send
timings.py    how long each recorded call took, and other calls of its role
replay.py     services that answer as the recorded ones did, and how many calls of a replay were recorded
live_study.py a live study: what is recorded of it, and within which caps
fidelity.py   whether a replay repeats the live study it was recorded from

A recording holds the seam's instants of each attempt and how it ended, so a live endpoint needs no log.
"""

from docmind_lab.experiments.recordings.caps import Caps
from docmind_lab.tables.traces.importers.recordings import RecordedCall, RecordedRun, Recording

__all__ = ["Caps", "RecordedCall", "RecordedRun", "Recording"]
