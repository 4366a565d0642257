"""`VirtualClock`, which runs code in virtual time."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import math
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, Literal, ParamSpec, TypeVar

from docmind_lab.core.errors import ConfigurationError, SimulationError
from docmind_lab.virtual_time.ending import MainThread, end_on_interrupt, watch
from docmind_lab.virtual_time.kernel import Alarm, Kernel, current_actor
from docmind_lab.virtual_time.one_core import OneCore
from docmind_lab.virtual_time.patches import flush_jupyter_in_real_time, patched_for, virtual_for, virtual_primitives
from docmind_lab.virtual_time.real_primitives import RealLock
from docmind_lab.virtual_time.reports import place_of_code, waiting_for_work
from docmind_lab.virtual_time.times import sleep

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

SUPPORTED_PYTHONS = ((3, 11), (3, 12), (3, 13))

# A day: longer than any run that is observed, and an end for a heartbeat that nobody stops.
DEFAULT_HORIZON_S = 86_400.0
# Imports inside a run take seconds on a busy machine; a real wait for ever is longer than this.
DEFAULT_STALL_AFTER_S = 10.0
# What os.cpu_count() says inside a run. Pools without a size take it plus 4, whatever machine the run is on.
DEFAULT_CPUS = 8

REMEDY = "it cannot be judged in virtual time; use the wall clock (--clock wall)"
"""The remedy in errors about calls that have no counterpart in virtual time."""

# A pool's worker is named by the number of its pool and its own, which differ from run to run.
_NUMBERS = re.compile(r"(-\d+)?_\d+$")

Entry = Callable[["VirtualClock"], AbstractContextManager[object]]


@dataclass(frozen=True)
class LeftAtWork:
    """Something that a run has begun and that has not ended.

    name: of the code that began a thread, of the pool's worker, or of the task's coroutine. where: file, line and
    function at which it waits; empty if that is unknown. thread: its name; empty for a task.
    """

    kind: Literal["thread", "job", "task"]
    name: str
    where: str = ""
    thread: str = ""


class VirtualClock:
    """Runs ordinary blocking code, threads and event loops included, without waiting.

        clock = VirtualClock()
        answer = clock.run(graph.invoke, inputs)     # or clock.run_async(graph.ainvoke, inputs)
        clock.returned_at_s                          # virtual seconds

    seed: None lets actors run in the order in which they became ready; a number draws another order, always the same
        for the same number, and makes locks places to lose the baton.
    horizon_s: virtual seconds from a run's begin that it is observed. What the function leaves behind goes on until
        then and is ended; a function that has not returned by then fails.
    stall_after_s: real seconds that an actor may go without a virtual wait.
    cpus: what `os.cpu_count()` is inside, so that the default size of pools does not depend on the machine.
    on_entry: called with this clock as a run begins, for context managers that are held open until its last actor has
        ended. The place for a virtual network: see `patched` and `call_at`.

    After a run: returned_at_s, when the function returned; quiescent_at_s, the last effect by the horizon, and no
    earlier than the return; handovers, how often the baton changed hands, which differs between equal runs. Effects
    are the ends of threads and of jobs in pools, and what `note_effect` was told; an idle worker, a heartbeat and a
    thread that hangs have none.

    where, remedy: what an error says of something that has no virtual time: the part of the program that a thread is in
    (thread id, None for the calling thread → text), set during a run by code that knows; and the remedy.

    on_wait: told of each wait of an actor that took time, when it is over: (name of its thread, what it waited for,
    instant at which it began). An idle worker of a pool is not told of.

    Raises: ConfigurationError for a value that cannot be used, or on a Python whose primitives are not known.
    """

    name = "virtual"

    def __init__(
        self,
        seed: int | None = None,
        horizon_s: float = DEFAULT_HORIZON_S,
        stall_after_s: float = DEFAULT_STALL_AFTER_S,
        *,
        cpus: int = DEFAULT_CPUS,
        on_entry: Sequence[Entry] = (),
    ) -> None:
        require_supported_python()
        _require(
            _is_number(horizon_s) and 0 < horizon_s < math.inf, "horizon_s", horizon_s, "finite virtual seconds above 0"
        )
        _require(
            _is_number(stall_after_s) and stall_after_s > 0, "stall_after_s", stall_after_s, "real seconds above 0"
        )
        _require(isinstance(cpus, int) and cpus > 0, "cpus", cpus, "a number of CPUs, 1 or more")
        _require(seed is None or isinstance(seed, int), "seed", seed, "None for first-come order, or a whole number")
        self.seed, self.horizon_s, self.stall_after_s = seed, horizon_s, stall_after_s
        self.cpus, self.on_entry = cpus, tuple(on_entry)
        self.returned_at_s: float | None = None
        self.quiescent_at_s: float | None = None
        self._kernel = self._new_kernel(0.0)
        self._lock = RealLock()
        self._runs: str | None = None
        self._stalled = False
        self.handovers = 0
        self.where: Callable[[int | None], str] | None = None
        self.remedy = REMEDY
        self.on_wait: Callable[[str, str, float], object] | None = None
        self._at_end: list[Callable[[], object]] = []

    def __repr__(self) -> str:
        return f"VirtualClock(now={self.now():.6f} s, seed={self.seed})"

    # ---- the time

    def now(self) -> float:
        """Return virtual seconds since the clock was made; they stand still between runs."""
        return self._kernel.now_s

    def sleep(self, seconds: float) -> None:
        """Wait for virtual seconds in the calling actor. Raises: SimulationError outside a run."""
        actor = current_actor()
        if actor is None or actor.kernel is not self._kernel:
            raise SimulationError("this clock moves only inside its own run; call run(function) and sleep there")
        sleep(actor, seconds)

    # ---- a run

    def run_async(
        self,
        function: Callable[Parameters, Coroutine[Any, Any, Result]],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Run a coroutine function by `asyncio.run` in virtual time and return its result; otherwise as `run`."""
        call = functools.partial(function, *args, **kwargs)
        return self._run(_name(function), lambda: asyncio.run(call()))

    def run(
        self, function: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        """Call a function in virtual time; return its result once every thread that it started has ended.

        It runs on a thread of its own with the caller's context variables; the caller waits in real time.

        Raises: what the function raises; SimulatedDeadlock when no actor can ever run again; SimulationStalled when
        one does not give up the baton; SimulationError when it has not returned by the horizon, or while another run
        of this clock, or around this thread, goes on.
        """
        call: Callable[[], Result] = functools.partial(
            virtual_for(function), *map(virtual_for, args), **{key: virtual_for(value) for key, value in kwargs.items()}
        )
        return self._run(_name(function), call)

    def _run(self, name: str, call: Callable[[], Result]) -> Result:
        self._begin(name)
        try:
            return self._simulate(contextvars.copy_context(), call)
        finally:
            self._runs = None

    def _begin(self, name: str) -> None:
        actor = current_actor()
        if actor is not None:
            raise SimulationError(
                f"{name} cannot be run: {actor.name} is inside a simulation already; call it directly, it has "
                "virtual time"
            )
        with self._lock:
            if self._runs is not None:
                raise SimulationError(
                    f"{name} cannot be run: this clock is running {self._runs}; give it its own clock"
                )
            if self._stalled:
                raise SimulationError(
                    f"{name} cannot be run: the last run of this clock stalled and its threads are left; make a new "
                    "clock, in a new process if those threads matter"
                )
            self._runs = name

    def _simulate(self, context: contextvars.Context, call: Callable[[], Result]) -> Result:
        kernel = self._kernel = self._new_kernel(self.now())
        kernel.clock = self
        self.returned_at_s = self.quiescent_at_s = None
        main = MainThread(kernel, functools.partial(context.run, call))
        with end_on_interrupt(kernel), ExitStack() as stack:
            core = stack.enter_context(OneCore())
            stack.enter_context(virtual_primitives())
            stack.enter_context(flush_jupyter_in_real_time(kernel))
            stack.callback(self._call_at_end)
            for entry in self.on_entry:
                stack.enter_context(entry(self))
            try:
                watch(kernel, main, self.stall_after_s, core)
            finally:
                self._stalled, self.handovers = kernel.abandoned, kernel.handovers
                # Lets go of the run's threads, and of what they hold.
                self._kernel = self._new_kernel(kernel.now_s)
        self.returned_at_s = main.returned_at_s
        self.quiescent_at_s = max(kernel.last_effect_s, main.returned_at_s or 0.0)
        error = kernel.take_requested_end() or kernel.failure or main.error
        if error is not None:
            raise error
        return main.result  # type: ignore[no-any-return]

    def _call_at_end(self) -> None:
        self.where = None
        while self._at_end:
            self._at_end.pop()()

    def _new_kernel(self, start_s: float) -> Kernel:
        return Kernel(start_s, start_s + self.horizon_s, self.seed, self.cpus)

    # ---- for code that extends a run

    def note_effect(self) -> None:
        """Record that something visible happened now: `quiescent_at_s` becomes no earlier than this instant."""
        self._kernel.note_effect()

    def call_at(self, at_s: float, function: Callable[[], object]) -> Alarm:
        """Call a function at an instant of the run, without a thread; the returned alarm can cancel it.

        The function must not wait: it may set events, put into a `SimpleQueue`, call `loop.call_soon_threadsafe`, or
        ask for further calls. It comes after the timeouts of its instant. Only actors and such functions may ask.
        """
        if self._runs is None:
            raise SimulationError("call_at is for the run that is going on, and none is; ask from on_entry or inside")
        return self._kernel.call_at(at_s, function)

    def charge(self, seconds: float) -> None:
        """Advance the clock by CPU seconds, during which no actor runs; otherwise CPU time is free.

        Args:
            seconds: Virtual seconds. Timers due by then fire late, as they do while an interpreter computes.

        Raises:
            SimulationError: Outside a run, or for a number below 0.
        """
        if self._runs is None or not 0 <= seconds < math.inf:
            raise SimulationError(f"charge is for 0 or more CPU seconds in the run that is going on, not {seconds!r}")
        self._kernel.now_s += seconds

    def left_at_work(self) -> list[LeftAtWork]:
        """Return the threads, jobs of pools and tasks that the run has begun and that have not ended.

        An idle worker of a pool is none, and neither is the calling thread.
        """
        return _left_at_work(self._kernel)

    def at_end(self, function: Callable[[], object]) -> None:
        """Register a function to be called outside the simulation when the run ends, the latest one first."""
        self._at_end.append(function)

    def patched(self, owner: Any, name: str, virtual: Callable[..., Any]) -> AbstractContextManager[None]:
        """Return a context manager that makes `owner.name` be `virtual` for this run's actors only.

        owner: a module or a class; for a class, `virtual` gets the instance first, as a method does. For `on_entry`.
        """

        def without_actor(_: object, *args: Any, **kwargs: Any) -> Any:
            return virtual(*args, **kwargs)

        return patched_for(self._kernel, owner, name, without_actor)


def current_clock() -> VirtualClock | None:
    """Return the clock whose run the calling thread belongs to; None outside a run.

    For what must be made anew in each run, such as a shared event loop or a pool.
    """
    actor = current_actor()
    clock = None if actor is None else actor.kernel.clock
    return clock if isinstance(clock, VirtualClock) else None


def require_supported_python(version: tuple[int, ...] = tuple(sys.version_info[:2])) -> None:
    """Require a Python version that virtual time knows. Raises: ConfigurationError for any other."""
    if version not in SUPPORTED_PYTHONS:
        versions = ", ".join(f"{major}.{minor}" for major, minor in SUPPORTED_PYTHONS)
        raise ConfigurationError(
            f"virtual time works on Python {versions}, not {version[0]}.{version[1]}; use one of those, or the wall "
            "clock, which works on any"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require(fits: bool, name: str, value: object, what: str) -> None:
    if not fits:
        raise ConfigurationError(f"{name} must be {what}, not {value!r}")


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _left_at_work(kernel: Kernel) -> list[LeftAtWork]:
    """Return what is still at work in a run, without idle workers of pools and the calling thread."""
    frames, left = sys._current_frames(), list[LeftAtWork]()
    for actor in kernel.actors:
        frame = frames.get(actor.thread.ident or 0)
        if actor is kernel.main or actor.thread is threading.current_thread():
            continue
        if actor.ends_count:
            left.append(LeftAtWork("thread", actor.started_at or actor.name, place_of_code(frame), actor.name))
        elif waiting_for_work(frame) is None:
            left.append(LeftAtWork("job", _NUMBERS.sub("", actor.name), place_of_code(frame), actor.name))
    for loop in kernel.loops:
        for task in () if loop.is_closed() else asyncio.all_tasks(loop):
            coroutine = task.get_coro()
            name = getattr(coroutine, "__qualname__", "") or task.get_name()
            left.append(LeftAtWork("task", name, place_of_code(getattr(coroutine, "cr_frame", None))))
    return left
