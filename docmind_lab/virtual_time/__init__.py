"""Virtual time: real threads and real event loops, run without waiting.

kernel              actors (the threads of a simulation) and their scheduler: the baton, who is ready, the timers
real_primitives     kept for the kernel and for all other threads
reports             where every actor waits, in words
locks               locks and the pools' queue
threads             starting and joining threads, the futures of pools
times               sleep, the clocks of `time`, the number of CPUs
virtual_event_loop  asyncio
patches             replacing the standard library's names by these during a run
ending              the function's own thread, leftover threads, the watch in real time
virtual_clock       VirtualClock

docs/virtual-time.md explains it. Importing this replaces nothing; a run does, and undoes it.
"""

from docmind_lab.core.clock import WALL
from docmind_lab.virtual_time.kernel import Alarm, outside_simulation
from docmind_lab.virtual_time.virtual_clock import VirtualClock, current_clock

__all__ = ["WALL", "Alarm", "VirtualClock", "current_clock", "outside_simulation"]
