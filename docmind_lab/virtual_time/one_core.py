"""Keeps a run's threads on one core: only one runs at a time, and a hand-over across cores is slow.

Waking a thread on another core, with a cold cache and the interpreter's lock still held, costs more than what many a
thread of a run then does. So a run's threads stay where its caller was, for as long as that core has time for them.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable
from typing import Self

# Below this share of a core something else has it too, and the system may know a better place.
_LEAST_SHARE = 0.7
# Shorter than this, a share says more about the scheduler's slices than about who else is there.
_JUDGED_AFTER_S = 1.0


class OneCore:
    """Pins the calling thread, and every thread started from it, to the core on which it runs now.

    A context manager; the caller's own cores are put back at its end. Does nothing where a system cannot do it.
    """

    def __init__(self) -> None:
        self._before: set[int] = set()
        self._looked_at_s = self._used_s = 0.0

    def __enter__(self) -> Self:
        self._before = _cores_of_caller()
        core = _core_of_caller()
        if len(self._before) > 1 and core in self._before and not _pin(0, {core}):
            self._before = set()
        self._looked_at_s, self._used_s = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        if self._before:
            _pin(0, self._before)

    def look(self, threads: Iterable[threading.Thread]) -> None:
        """Unpin the threads once the core turns out to be shared; the caller calls this now and then."""
        elapsed_s = time.perf_counter() - self._looked_at_s
        if not self._before or elapsed_s < _JUDGED_AFTER_S:
            return
        used_s = time.process_time()
        if (used_s - self._used_s) / elapsed_s < _LEAST_SHARE:
            before, self._before = self._before, set()
            for thread_id in (0, *(thread.native_id for thread in threads if thread.is_alive())):
                if thread_id is not None:
                    _pin(thread_id, before)
        self._looked_at_s, self._used_s = time.perf_counter(), used_s


def _cores_of_caller() -> set[int]:
    return os.sched_getaffinity(0) if sys.platform == "linux" else set()


def _core_of_caller() -> int:
    """Return the number of the core that the calling thread runs on; -1 if the system does not say."""
    ask = getattr(ctypes.CDLL(None), "sched_getcpu", None) if sys.platform == "linux" else None
    return -1 if ask is None else int(ask())


def _pin(thread_id: int, cores: set[int]) -> bool:
    """Pin a thread (0: the caller) to these cores; return False if it has ended or may not be moved."""
    try:
        os.sched_setaffinity(thread_id, cores)
    except OSError:
        return False
    return True
