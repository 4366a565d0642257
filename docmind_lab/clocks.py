"""The clocks under their public names: real time and virtual time."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from docmind_lab.core.clock import CLOCKS, WALL, Clock, ClockName, WallClock

if TYPE_CHECKING:
    from docmind_lab.virtual_time import VirtualClock, outside_simulation

__all__ = ["CLOCKS", "WALL", "Clock", "ClockName", "VirtualClock", "WallClock", "outside_simulation"]


def __getattr__(name: str) -> Any:
    # Who only wants the wall clock imports no event loop.
    if name in ("VirtualClock", "outside_simulation"):
        return getattr(importlib.import_module("docmind_lab.virtual_time"), name)
    raise AttributeError(f"module 'docmind_lab.clocks' has no attribute {name!r}")
