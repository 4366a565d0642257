"""Virtual replacements for the functions of `time`, and for the machine's number of CPUs.

Virtual time counts from 0 in a new clock. `time.time` counts from one fixed day, the same in every run.
"""

from __future__ import annotations

import functools
import math
import os
import select
import time
from collections.abc import Callable
from types import MethodType
from typing import Any

from docmind_lab.virtual_time.kernel import SLEEP, Actor, this_thread
from docmind_lab.virtual_time.real_primitives import real_sleep

# 2025-06-15, 15:06:40 UTC: what time.time() shows at virtual instant 0.
CALENDAR_START_S = 1_750_000_000
real_select = select.select
_real_clock_gettime = time.clock_gettime
# Those that count seconds of the world; others count a CPU's.
_CALENDARS = frozenset(
    number for name in ("CLOCK_REALTIME", "CLOCK_TAI") if (number := getattr(time, name, None)) is not None
)
_STEADY = frozenset(
    number
    for name in ("CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_UPTIME", "CLOCK_UPTIME_RAW")
    if (number := getattr(time, name, None)) is not None
)


def sleep(actor: Actor, seconds: float) -> None:
    """Sleep as `time.sleep` does, in virtual seconds; 0 lets the actors that are ready run first."""
    if not 0 <= seconds < math.inf:
        real_sleep(seconds)  # raises what it always does
    elif seconds == 0:
        actor.kernel.pause()
    else:
        actor.kernel.park(seconds, "time.sleep", SLEEP)


def for_actors(virtual: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `virtual(actor, ...)` for an actor and `real(...)` for any other thread."""

    @functools.wraps(real)
    def call(*args: Any, **kwargs: Any) -> Any:
        actor = this_thread.actor
        return real(*args, **kwargs) if actor is None else virtual(actor, *args, **kwargs)

    return call


# A builtin does not become a method of a class that holds it, and neither does what stands for one: it is a method
# already, of the builtin.


def replace_builtin(real: Callable[..., Any], virtual: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement for a builtin: `virtual(actor, ...)` for an actor, the builtin for other threads."""
    return MethodType(for_actors(lambda actor, _, *args: virtual(actor, *args), _without_first_argument(real)), real)


def _without_first_argument(real: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(real)
    def call(_: object, *args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs)

    return call


def _clock_reader(real: Callable[[], Any], virtual: Callable[[float], Any]) -> Callable[[], Any]:
    @functools.wraps(real)
    def read(real: Callable[[], Any]) -> Any:
        actor = this_thread.actor
        return real() if actor is None else virtual(actor.kernel.now_s)

    return MethodType(read, real)


def _seconds(now_s: float) -> float:
    return now_s


def _nanoseconds(now_s: float) -> int:
    return round(now_s * 1e9)


def _cpus(actor: Actor) -> int:
    return actor.kernel.cpus


def _clock_gettime(actor: Actor, clock: int) -> float:
    if clock in _STEADY:
        return actor.kernel.now_s
    return CALENDAR_START_S + actor.kernel.now_s if clock in _CALENDARS else _real_clock_gettime(clock)


def _clock_gettime_ns(actor: Actor, clock: int) -> int:
    if clock in _STEADY:
        return _nanoseconds(actor.kernel.now_s)
    if clock in _CALENDARS:
        return CALENDAR_START_S * 10**9 + _nanoseconds(actor.kernel.now_s)
    return round(_real_clock_gettime(clock) * 1e9)


def replacements() -> list[tuple[Callable[..., Any], Callable[..., Any]]]:
    """Return pairs of a builtin and its replacement during a run."""
    pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
        (time.sleep, replace_builtin(time.sleep, sleep)),
        (time.monotonic, _clock_reader(time.monotonic, _seconds)),
        (time.monotonic_ns, _clock_reader(time.monotonic_ns, _nanoseconds)),
        (time.perf_counter, _clock_reader(time.perf_counter, _seconds)),
        (time.perf_counter_ns, _clock_reader(time.perf_counter_ns, _nanoseconds)),
        (time.time, _clock_reader(time.time, lambda now_s: CALENDAR_START_S + now_s)),
        (time.time_ns, _clock_reader(time.time_ns, lambda now_s: CALENDAR_START_S * 10**9 + _nanoseconds(now_s))),
        (time.clock_gettime, replace_builtin(time.clock_gettime, _clock_gettime)),
        (time.clock_gettime_ns, replace_builtin(time.clock_gettime_ns, _clock_gettime_ns)),
        (os.cpu_count, replace_builtin(os.cpu_count, _cpus)),
    ]
    # What pools ask from 3.13 on.
    process_cpu_count = getattr(os, "process_cpu_count", None)
    if process_cpu_count is not None:
        pairs.append((process_cpu_count, replace_builtin(process_cpu_count, _cpus)))
    return pairs
