"""`Actor`: one thread of a simulation, which runs in virtual time. Other threads are not actors.

The real primitives are kept here under names that no run replaces, for the kernel itself and for all other threads.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from docmind_lab.virtual_time.kernel import Kernel

real_sleep, real_monotonic = time.sleep, time.monotonic
RealLock, RealSimpleQueue = threading.Lock, queue.SimpleQueue
real_start, real_join, real_is_alive = threading.Thread.start, threading.Thread.join, threading.Thread.is_alive


ITEM_OF_QUEUE = "an item of a queue"
"""What an idle worker of a pool waits for, in words."""


class SimulationOver(BaseException):
    """Ends an actor that outlives its run. A BaseException, so that `except Exception` does not catch it."""


class Actor:
    """One thread of a simulation. It runs only while it holds the baton, and waits for the baton at its gate.

    wait_number: tells the timer of this wait from those of earlier ones. woken: how its last wait ended, by being
    woken or by its timer. pending_error: raised in the actor as soon as it has the baton. is_outside: whether it is in
    a block of `outside_simulation`. started_at: the code that started it; "" of a pool's worker.
    """

    __slots__ = (
        "ends_count",
        "finished",
        "gate",
        "is_outside",
        "joiners",
        "kernel",
        "loop",
        "parked",
        "pending_error",
        "started_at",
        "thread",
        "wait_number",
        "waits_for",
        "wakes_at_s",
        "woken",
    )

    def __init__(self, kernel: Kernel, thread: threading.Thread) -> None:
        self.kernel, self.thread = kernel, thread
        self.gate = RealLock()
        self.gate.acquire()
        self.parked = self.woken = self.finished = self.is_outside = False
        self.wait_number = 0
        self.waits_for = "its turn"
        self.wakes_at_s: float | None = None
        self.pending_error: BaseException | None = None
        self.joiners: deque[Actor] = deque()
        self.started_at = ""
        self.loop: asyncio.AbstractEventLoop | None = None
        # Whether its end is a side effect. The end of a pool's worker says nothing about work, its jobs' ends do.
        self.ends_count = True

    @property
    def name(self) -> str:
        """The name of the actor's thread."""
        return self.thread.name


class _ThisThread(threading.local):
    actor: Actor | None = None


this_thread = _ThisThread()


def current_actor() -> Actor | None:
    """Return the actor of the calling thread; None for a thread outside every simulation."""
    return this_thread.actor


def calling_actor() -> Actor:
    """Return the actor of the calling thread, which must be one."""
    actor = this_thread.actor
    assert actor is not None, "only a thread of the simulation gets here"
    return actor


@contextmanager
def outside_simulation() -> Iterator[None]:
    """Make the calling actor an ordinary thread during a block: real time, real locks, and it keeps the baton.

    For what must happen in the real world while virtual time stands still: printing in a notebook, writing a file
    through a lock made before the run. Too long in it is a stall. In any other thread the block changes nothing.
    """
    actor, this_thread.actor = this_thread.actor, None
    if actor is not None:
        actor.is_outside = True
    try:
        yield
    finally:
        this_thread.actor = actor
        if actor is not None:
            actor.is_outside = False
