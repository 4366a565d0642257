"""Locks, those of imports too, and the queue that thread pools use, with virtual waiting.

Conditions, events, semaphores, barriers, queues and futures of the standard library are Python code over these, and
need nothing of their own. An object made by an actor keeps working for everyone after the run: it has a real lock
inside, and a thread that is no actor just takes that one.
"""

from __future__ import annotations

import importlib._bootstrap
import queue
import sys
import threading
from collections import deque
from types import FrameType, GenericAlias
from typing import Any, ClassVar

from docmind_lab.virtual_time.kernel import Actor, current_actor, this_thread
from docmind_lab.virtual_time.real_primitives import RealLock, RealSimpleQueue
from docmind_lab.virtual_time.reports import ITEM_OF_QUEUE

_RealLockType: type = type(RealLock())

ImportLock: Any = importlib._bootstrap._ModuleLock  # type: ignore[attr-defined]
"""The lock that a thread holds while it executes a module; others that import the module wait at its `wakeup`."""
_init_real_import_lock = ImportLock.__init__


class ReplacementType(type):
    """The metaclass of a class that replaces a real one; instances of the real one count as its own."""

    real: type

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, cls.real)


class SimulatedLock(metaclass=ReplacementType):
    """`threading.Lock` with virtual waiting; a thread that is no actor gets a real lock."""

    __slots__ = ("__weakref__", "_lock", "_waiters")
    real: ClassVar[type] = _RealLockType
    _lock: threading.Lock
    _waiters: deque[Actor] | None

    def __new__(cls) -> Any:  # noqa: D102 - what comes back is the first line of the class
        actor = this_thread.actor
        if actor is None:
            return RealLock()
        lock = object.__new__(PreemptibleLock if actor.kernel.exploring else SimulatedLock)
        lock._lock, lock._waiters = RealLock(), None
        return lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock as `threading.Lock.acquire` does, waiting in virtual seconds."""
        if not blocking or not (timeout == -1 or 0 <= timeout <= threading.TIMEOUT_MAX):
            return self._lock.acquire(blocking, timeout)
        if self._lock.acquire(False):
            return True
        actor = this_thread.actor
        return self._lock.acquire(True, timeout) if actor is None else self._wait(actor, timeout)

    __enter__ = acquire

    def _wait(self, actor: Actor, timeout: float) -> bool:
        kernel, deadline_s = actor.kernel, actor.kernel.now_s + timeout
        if self._waiters is None:
            self._waiters = deque()
        while not self._lock.acquire(False):
            left_s = None if timeout < 0 else deadline_s - kernel.now_s
            if not kernel.wait(self._waiters, left_s, "a lock"):
                return self._lock.acquire(False)
        return True

    def release(self) -> None:
        """Release the lock as `threading.Lock.release` does."""
        self._lock.release()
        if self._waiters:
            self._waiters[0].kernel.wake_one(self._waiters)

    def __exit__(self, *error: object) -> None:
        self.release()

    def locked(self) -> bool:
        """Whether a thread holds the lock."""
        return self._lock.locked()

    def _at_fork_reinit(self) -> None:
        self._lock, self._waiters = RealLock(), None


class PreemptibleLock(SimulatedLock):
    """A lock at which an actor may lose the baton, for runs that explore orders of threads."""

    __slots__ = ()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock as `SimulatedLock.acquire` does, after letting others run first."""
        actor = this_thread.actor
        if blocking and actor is not None and _may_lose_the_baton(sys._getframe(1)):
            actor.kernel.pause()
        return SimulatedLock.acquire(self, blocking, timeout)

    __enter__ = acquire


def _may_lose_the_baton(frame: FrameType | None) -> bool:
    """Whether the program itself acquires this lock, and not an event or an import on its behalf.

    Those happen inside real locks too (a connection pool made before the run, the import of a module), and whoever
    is next could want the same one: a stall that no real schedule has.
    """
    while frame is not None and frame.f_globals.get("__name__") == "threading":
        if frame.f_code.co_name not in ("__enter__", "acquire"):
            return False
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names:
        return False
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return False
        frame = frame.f_back
    return True


def init_import_lock(actor: Actor, lock: Any, *args: Any) -> None:
    """Initialise the lock of an import so that actors wait at it virtually."""
    _init_real_import_lock(lock, *args)
    lock.wakeup = SimulatedLock()


class SimulatedSimpleQueue(metaclass=ReplacementType):
    """`queue.SimpleQueue` with virtual waiting; a thread that is no actor gets the real one.

    Like the real one, and unlike one made of locks, `put` may be called from a destructor in the middle of anything.
    A real one is inside, so that a thread that is no actor waits for an item in real time.
    """

    __slots__ = ("__weakref__", "_items", "_waiters")
    real: ClassVar[type] = RealSimpleQueue
    _items: queue.SimpleQueue[Any]
    _waiters: deque[Actor]

    def __new__(cls) -> Any:  # noqa: D102 - what comes back is the first line of the class
        if this_thread.actor is None:
            return RealSimpleQueue()
        simulated = object.__new__(cls)
        simulated._items, simulated._waiters = RealSimpleQueue(), deque()
        return simulated

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Add an item; never waits."""
        self._items.put(item)
        if self._waiters:
            self._waiters[0].kernel.wake_one(self._waiters)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Remove and return the oldest item, waiting for one. Raises: queue.Empty."""
        if timeout is not None and timeout < 0:
            raise ValueError("'timeout' must be a non-negative number")
        actor = current_actor()
        if actor is None or not block:
            return self._items.get(block, timeout)
        kernel, end_s = actor.kernel, None if timeout is None else actor.kernel.now_s + timeout
        while self._items.empty():
            left_s = None if end_s is None else end_s - kernel.now_s
            if not kernel.wait(self._waiters, left_s, ITEM_OF_QUEUE):
                break
        return self._items.get(block=False)

    def put_nowait(self, item: Any) -> None:
        """Add an item."""
        self.put(item)

    def get_nowait(self) -> Any:
        """Remove and return the oldest item without waiting. Raises: queue.Empty."""
        return self.get(block=False)

    def qsize(self) -> int:
        """Return the number of items in the queue."""
        return self._items.qsize()

    def empty(self) -> bool:
        """Whether the queue has no items."""
        return self._items.empty()

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)
