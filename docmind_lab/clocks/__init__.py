"""How time passes: a `Clock` is handed to whatever waits or looks at the time.

base.py    the protocol
wall.py    real time
"""

from docmind_lab.clocks.base import Clock
from docmind_lab.clocks.wall import WALL, WallClock

__all__ = ["WALL", "Clock", "WallClock"]
