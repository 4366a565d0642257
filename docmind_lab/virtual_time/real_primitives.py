"""The real primitives, for the kernel and for all threads outside a run, and how actors end."""

from __future__ import annotations

import queue
import threading
import time

real_sleep, real_monotonic = time.sleep, time.monotonic
RealLock, RealSimpleQueue = threading.Lock, queue.SimpleQueue
real_start, real_join, real_is_alive = threading.Thread.start, threading.Thread.join, threading.Thread.is_alive


class SimulationOver(BaseException):
    """Ends an actor that outlives its run. A BaseException, so that `except Exception` does not catch it."""
