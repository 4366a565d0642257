"""Virtual time: real threads and real event loops, run without waiting.

actors      who lives in a simulation, and the real primitives kept for everyone else
kernel      the baton, the ready ones, the timers: who runs next, and when nothing can
reports     where every actor waits, in words
locks       locks and the pools' queue
threads     starting and joining threads, the futures of pools
times       sleep, the clocks of `time`, the number of CPUs
event_loop  asyncio
patches     putting all of these in place, and back
ending      the function's own thread, what it leaves behind, the watch in real time
clock       VirtualClock

docs/virtual-time.md explains it. Importing this replaces nothing; a run does, and undoes it.
"""

from docmind_lab.virtual_time.actors import outside_simulation
from docmind_lab.virtual_time.clock import VirtualClock, current_clock
from docmind_lab.virtual_time.kernel import Alarm

__all__ = ["Alarm", "VirtualClock", "current_clock", "outside_simulation"]
