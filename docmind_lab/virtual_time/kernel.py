"""The scheduler of one run: which actor holds the baton, which is ready, and which timer fires next.

Only the actor that holds the baton calls these methods, so nothing here needs a lock. Three rules give every run the
same course:

- Actors that can run do so in the order in which they became ready, or, with a seed, in an order drawn from it.
- Time moves only when none is ready, and then to the earliest timer. One timer fires; whatever it sets in motion comes
  to rest before the next one does.
- Timers of one instant: first those that end a wait for something (a timeout, an event loop), then sleeps, each in
  order of creation. So what would be ready exactly at a deadline is late, as `Deadline.passed` has it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from docmind_lab.core.errors import NotSimulated, RunCut, SimulationError
from docmind_lab.virtual_time.real_primitives import RealLock, SimulationOver
from docmind_lab.virtual_time.reports import ITEM_OF_QUEUE, nothing_to_run, place_of

TIMED_WAIT, SLEEP = 0, 1


@dataclass(eq=False, repr=False, slots=True)
class Actor:
    """One thread of a simulation. It runs only while it holds the baton, and waits for the baton at its gate.

    wait_number: tells the timer of this wait from those of earlier ones. woken: how its last wait ended, by being
    woken or by its timer. pending_error: raised in the actor as soon as it has the baton. is_outside: whether it is in
    a block of `outside_simulation`. started_at: the code that started it; "" of a pool's worker.
    """

    kernel: Kernel
    thread: threading.Thread
    gate: threading.Lock = field(default_factory=RealLock)
    parked: bool = False
    woken: bool = False
    finished: bool = False
    is_outside: bool = False
    wait_number: int = 0
    waits_for: str = "its turn"
    wakes_at_s: float | None = None
    pending_error: BaseException | None = None
    joiners: deque[Actor] = field(default_factory=deque)
    started_at: str = ""
    loop: asyncio.AbstractEventLoop | None = None
    # Whether its end is a side effect. The end of a pool's worker says nothing about work, its jobs' ends do.
    ends_count: bool = True

    def __post_init__(self) -> None:
        self.gate.acquire()

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


class Alarm:
    """A function that the kernel calls at an instant, and that must not wait; `cancel` prevents the call."""

    __slots__ = ("cancelled", "function")

    def __init__(self, function: Callable[[], object]) -> None:
        self.function, self.cancelled = function, False

    def cancel(self) -> None:
        """Prevent the call of the function."""
        self.cancelled = True


class Listener(Protocol):
    """What the kernel asks and tells of its clock: who waited, which part of the program a thread is in, a remedy."""

    on_wait: Callable[[str, str, float], object] | None
    where: Callable[[int | None], str] | None
    remedy: str


class Kernel:
    """The scheduler and the state of one run in virtual time.

    start_s: virtual instant at which it begins. limit_at_s: no timer after this instant fires. seed: None for
    first-come order. cpus: see `VirtualClock`.
    """

    def __init__(self, start_s: float, limit_at_s: float, seed: int | None, cpus: int) -> None:
        self.now_s, self.started_at_s, self.limit_at_s = start_s, start_s, limit_at_s
        self.cpus = cpus
        self.exploring = seed is not None
        self.clock: Listener | None = None
        self.main: Actor | None = None
        self.running: Actor | None = None
        self.actors: list[Actor] = []
        self.threads: list[threading.Thread] = []
        self.loops: list[asyncio.AbstractEventLoop] = []
        # Pools with workers of this run; those that are still there at its end are renewed, in this order.
        self.pools: weakref.WeakKeyDictionary[ThreadPoolExecutor, None] = weakref.WeakKeyDictionary()
        self.handovers = 0
        self.last_effect_s = start_s
        self.numbers = itertools.count()
        self.draining = self.ending = self.abandoned = False
        self.interrupt: BaseException | None = None
        self.failure: BaseException | None = None
        self._real_wait: tuple[Actor, str] | None = None
        self._random = random.Random(seed) if self.exploring else None
        self._ready: deque[Actor] = deque()
        self._timers: list[tuple[float, int, int, Actor | Alarm, int]] = []
        self._tickets = itertools.count()
        self._in_alarm = False

    # ---- what primitives are made of

    def wait(self, waiters: deque[Actor], timeout_s: float | None, waits_for: str) -> bool:
        """Park the running actor in `waiters`; return True after `wake_one(waiters)`, False after `timeout_s`."""
        actor = calling_actor()
        waiters.append(actor)
        woken = False
        try:
            woken = self.park(timeout_s, waits_for)
        finally:
            if not woken and actor in waiters:
                waiters.remove(actor)
        return woken

    def wake_one(self, waiters: deque[Actor]) -> None:
        """Make ready the actor that has waited longest in `waiters`."""
        while waiters:
            actor = waiters.popleft()
            if actor.parked:
                self.make_ready(actor, woken=True)
                return

    def park(self, timeout_s: float | None, waits_for: str, kind: int = TIMED_WAIT) -> bool:
        """Give up the baton until woken (return True) or until `timeout_s` has passed (return False)."""
        actor = calling_actor()
        if self._in_alarm:
            raise SimulationError("a function given to call_at must not wait; let it set an event or put into a queue")
        actor.parked, actor.waits_for, actor.wakes_at_s = True, waits_for, None
        actor.wait_number += 1
        if timeout_s is not None:
            actor.wakes_at_s = self.now_s + max(0.0, timeout_s)
            heapq.heappush(self._timers, (actor.wakes_at_s, kind, next(self._tickets), actor, actor.wait_number))
        begun_s = self.now_s
        self._hand_over(actor)
        is_idle_worker = not actor.ends_count and waits_for == ITEM_OF_QUEUE
        if self.clock is not None and self.clock.on_wait is not None and self.now_s > begun_s and not is_idle_worker:
            self.clock.on_wait(actor.name, waits_for, begun_s)
        return actor.woken

    def pause(self) -> None:
        """Let the actors that are ready run first."""
        if self._ready and not self._in_alarm:
            actor = calling_actor()
            actor.waits_for = "its turn"
            self._ready.append(actor)
            self._hand_over(actor)

    def call_at(self, at_s: float, function: Callable[[], object]) -> Alarm:
        """Schedule a function for an instant (at once, if that has passed); it runs as no actor."""
        alarm = Alarm(function)
        heapq.heappush(self._timers, (max(at_s, self.now_s), SLEEP, next(self._tickets), alarm, 0))
        return alarm

    def note_effect(self) -> None:
        """Record that something happened now which others can see."""
        if not self.ending:
            self.last_effect_s = self.now_s

    # ---- who runs

    def admit(self, actor: Actor) -> None:
        """Add an actor that is ready to run."""
        self.actors.append(actor)
        self.threads.append(actor.thread)
        self._ready.append(actor)

    def retire(self, actor: Actor) -> None:
        """Remove an actor that has ended, and hand the baton on."""
        if self.abandoned:
            self.end_the_next(actor)
        else:
            if actor.ends_count:
                self.note_effect()
            actor.finished = True
            self.actors.remove(actor)
            while actor.joiners:
                self.wake_one(actor.joiners)
            # Still as this actor, since what an alarm does here is to be virtual too.
            self._hand_over(actor)
        this_thread.actor = None

    def end_the_next(self, actor: Actor) -> None:
        """Remove an actor of an abandoned run that has ended, and end the next one.

        The latest first: the names are real again, so an actor that joins others as it unwinds would wait for ever.
        """
        self.actors.remove(actor)
        if self.actors:
            self.actors[-1].pending_error = SimulationOver()
            self.actors[-1].gate.release()

    def make_ready(self, actor: Actor, woken: bool) -> None:
        """Put a waiting actor at the end of the queue of ready ones."""
        actor.parked, actor.woken = False, woken
        self._ready.append(actor)

    def _hand_over(self, actor: Actor) -> None:
        """Give the baton to the next actor and, unless this one has ended, wait to get it back."""
        if self.abandoned:
            raise SimulationOver
        self.handovers += 1
        chosen = self.running = self._choose()
        if chosen is not actor:
            chosen.gate.release()
            if actor.finished:
                return
            actor.gate.acquire()
        if actor.pending_error is not None:
            error, actor.pending_error = actor.pending_error, None
            raise error

    def _choose(self) -> Actor:
        if self.is_to_end and (error := self.take_requested_end()) is not None:
            self.fail(error)
        while not self._ready and self._fire():
            pass
        if not self._ready:
            if self.draining:
                assert self.main is not None
                self.make_ready(self.main, woken=True)
            else:
                self.fail(self._no_runnable_error())
        if self._random is not None and len(self._ready) > 1:
            self._ready.rotate(-self._random.randrange(len(self._ready)))
        return self._ready.popleft()

    # ---- time

    def _fire(self) -> bool:
        """Fire the earliest timer (with a seed, all of its instant and kind); return whether one was due."""
        fired: tuple[float, int] | None = None
        while self._timers:
            due_s, kind, _, target, wait_number = self._timers[0]
            if isinstance(target, Alarm):
                live = not target.cancelled
            else:
                live = target.parked and target.wait_number == wait_number
            if live:
                together = self.exploring and fired == (due_s, kind)
                if due_s > self.limit_at_s or (fired is not None and not together):
                    break
                fired = due_s, kind
                # A charge for CPU may have moved the clock past this timer.
                self.now_s = max(self.now_s, due_s)
            heapq.heappop(self._timers)
            if live:
                self._fire_one(target)
            if live and not self.exploring:
                break
        return fired is not None

    def _fire_one(self, target: Actor | Alarm) -> None:
        if isinstance(target, Actor):
            self.make_ready(target, woken=False)
            return
        self._in_alarm = True
        try:
            target.function()
        except Exception as error:  # noqa: BLE001 - no actor called it, so the run ends with it
            self.fail(error)
        finally:
            self._in_alarm = False

    # ---- when a run cannot go on

    @property
    def is_to_end(self) -> bool:
        """Whether something outside the run has requested its end, and the end has not begun."""
        return self.interrupt is not None or self._real_wait is not None

    def take_requested_end(self) -> BaseException | None:
        """Return the error that something outside requested the run to end with, once; None without a request."""
        error = self.interrupt
        if error is None and self._real_wait is not None and self.failure is None:
            error = self.real_wait_error()
        self.interrupt = self._real_wait = None
        return error

    def note_real_wait(self, actor: Actor, place: str) -> None:
        """End the run at the next hand-over because an actor waits in real time; called by the watch."""
        if self._real_wait is None and self.failure is None:
            self._real_wait = actor, place

    def real_wait_error(self) -> NotSimulated:
        """Return the error for the wait in real time that the watch saw."""
        assert self._real_wait is not None
        actor, place = self._real_wait
        return self.not_simulated(
            f"a wait in real time, which takes no virtual time, at {place or actor.name}", actor.thread.ident
        )

    def refuse(self, what: str) -> NoReturn:
        """End the run because the calling actor made a call that has no virtual time.

        what: the call, by name. Raises: RunCut in the actor, so that no `except Exception` goes on without it.
        """
        error = self.not_simulated(f"{what} has no virtual time, at {place_of(threading.current_thread())}")
        if self.failure is None:
            self.fail(error)
        raise RunCut(error)

    def where(self, thread_id: int | None = None) -> str:
        """Return the part of the program that a thread is in, in brackets; "" if it is not known."""
        where = None if self.clock is None else self.clock.where
        place = "" if where is None else where(thread_id)
        return f" ({place})" if place else ""

    def not_simulated(self, what: str, thread_id: int | None = None) -> NotSimulated:
        """Return the error for a call without virtual time. thread_id: where; None for the calling thread."""
        remedy = self.clock.remedy if self.clock is not None else ""
        return NotSimulated(f"{what}{self.where(thread_id)}; {remedy}")

    def fail(self, error: BaseException) -> None:
        """End the run with this error: the function's wait raises it, and unwinding takes no virtual time.

        A function that swallows it and waits again gets one that is harder to swallow.
        """
        assert self.main is not None
        self.main.pending_error = error if self.failure is None else SimulationOver()
        if self.failure is None or isinstance(error, KeyboardInterrupt):
            self.failure = error
        self.limit_at_s = -math.inf
        if self.main.parked:
            self.make_ready(self.main, woken=False)

    def _no_runnable_error(self) -> BaseException:
        if self.failure is not None:
            return SimulationOver()
        run_s = self.limit_at_s - self.started_at_s if self._timers else None
        return nothing_to_run(self.actors, self.now_s, run_s)
