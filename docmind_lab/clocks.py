"""The clocks under their public names: real time and virtual time."""

from __future__ import annotations

from docmind_lab.core.clock import CLOCKS, Clock, ClockName
from docmind_lab.core.wall_clock import WALL, WallClock
from docmind_lab.virtual_time import VirtualClock, outside_simulation

__all__ = ["CLOCKS", "WALL", "Clock", "ClockName", "VirtualClock", "WallClock", "outside_simulation"]
