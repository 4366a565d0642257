"""How time passes: a `Clock` is handed to whatever waits or looks at the time.

base.py    the protocol, and the names of the clocks there are
wall.py    real time
virtual/   simulated time; imported when one of its names is first used
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from docmind_lab.clocks.base import CLOCKS, Clock, ClockName
from docmind_lab.clocks.wall import WALL, WallClock

if TYPE_CHECKING:
    from docmind_lab.clocks.virtual import VirtualClock, outside_simulation

__all__ = ["CLOCKS", "WALL", "Clock", "ClockName", "VirtualClock", "WallClock", "outside_simulation"]


def __getattr__(name: str) -> Any:
    if name in ("VirtualClock", "outside_simulation"):
        return getattr(importlib.import_module("docmind_lab.clocks.virtual"), name)
    raise AttributeError(f"module 'docmind_lab.clocks' has no attribute {name!r}")
