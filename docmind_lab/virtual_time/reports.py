"""Describes where the actors of a simulation wait, for errors of a run."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterable
from types import FrameType
from typing import Any, Protocol

from docmind_lab.core.errors import SimulatedDeadlock, SimulationError

_OWN_FOLDER = os.path.dirname(__file__)
_STANDARD_LIBRARY = os.path.dirname(threading.__file__)
_KERNEL = os.path.join(_OWN_FOLDER, "kernel.py")
# Where a thread waits for its first turn.
_BEGINNINGS = os.path.join(_OWN_FOLDER, "threads.py")
_STACK_LINES = 6
_EXEMPT = frozenset({"importlib._bootstrap", "bdb", "pdb", "pydevd", "debugpy"})


ITEM_OF_QUEUE = "an item of a queue"
"""What an idle worker of a pool waits for, in words."""


class Waiting(Protocol):
    """What is told of an actor: its thread and loop, what it waits for, and until when."""

    thread: threading.Thread
    loop: asyncio.AbstractEventLoop | None
    waits_for: str
    wakes_at_s: float | None

    @property
    def name(self) -> str:
        """The name of its thread."""
        ...


def where_everyone_waits(actors: Iterable[Waiting]) -> str:
    """Describe each actor in a paragraph: its name, what it waits for, its stack and its loop's tasks."""
    frames = sys._current_frames()
    return "\n".join(_paragraph(actor, frames.get(actor.thread.ident or 0)) for actor in actors)


def nothing_to_run(actors: Iterable[Waiting], now_s: float, horizon_s: float | None) -> SimulationError:
    """Return the error for a run in which nobody can go on, now. horizon_s: its length, if timers are left after it."""
    everyone = where_everyone_waits(actors)
    if horizon_s is not None:
        return SimulationError(
            f"the function had not returned at the horizon, {horizon_s:g} virtual s after the run began; make "
            f"horizon_s larger, or bound its waits\n{everyone}"
        )
    return SimulatedDeadlock(
        f"at {now_s:.6f} virtual s every actor waits and no timer is left. Is it a lock order, an event that nobody "
        f"sets, or something made before the run (a pool, a loop, a lock)? Make that inside the run.\n{everyone}"
    )


def _paragraph(actor: Waiting, frame: FrameType | None) -> str:
    outside = [each for each in _outwards(frame) if not _is_in(each, _OWN_FOLDER)]
    waits_for = _standard_call(outside) or actor.waits_for
    until = "" if actor.wakes_at_s is None else f" until {actor.wakes_at_s:.6f} s"
    if not outside:
        return f"- {actor.name} has not begun"
    own = next((each for each in outside if not _is_in(each, _STANDARD_LIBRARY)), outside[0])
    lines = [f"- {actor.name} waits for {waits_for}{until} at {_place(own)}"]
    for entry in reversed(outside[:_STACK_LINES]):
        lines.append(f"    {_place(entry)}")
    for task in asyncio.all_tasks(actor.loop) if actor.loop is not None else ():
        lines.append(f"    {task.get_name()} of its event loop awaits")
        lines += [f"      {place}" for place in _await_chain(task.get_coro())]
    return "\n".join(lines)


def place_of(thread: threading.Thread) -> str:
    """Return file, line and function of a thread's innermost code outside libraries; "" once it has ended."""
    return place_of_code(sys._current_frames().get(thread.ident or 0))


def place_of_code(frame: FrameType | None) -> str:
    """Return file, line and function of the nearest code outside libraries, from a frame outwards."""
    nearest = None
    for each in _outwards(frame):
        if _is_in(each, _OWN_FOLDER):
            continue
        nearest = nearest or each
        if not _is_in_library(each):
            return _place(each)
    return "" if nearest is None else _place(nearest)


def _is_in_library(frame: FrameType) -> bool:
    return _is_in(frame, _STANDARD_LIBRARY) or "site-packages" in frame.f_code.co_filename


def waiting_for_work(frame: FrameType | None) -> Any:
    """Return the queue from which a thread waits to get an item, or the event that it waits for without a limit.

    None if it waits for something else. A wait with a limit is a rhythm, such as a heartbeat's, and not one for work.
    """
    for each in _outwards(frame):
        owner = each.f_locals.get("self")
        if each.f_code.co_name == "get" and (
            isinstance(owner, queue.Queue) or type(owner).__name__ == "SimulatedSimpleQueue"
        ):
            return owner
        if each.f_code.co_name == "wait" and isinstance(owner, threading.Event):
            # Libraries wait for events of their own: the start of a thread, a connection of a pool.
            is_own = each.f_back is not None and not _is_in_library(each.f_back)
            return owner if each.f_locals.get("timeout") is None and is_own else None
    return None


def is_handing_over(frame: FrameType) -> bool:
    """Whether a thread is about to give the baton to another one."""
    return any(each.f_code.co_filename == _KERNEL for each in _outwards(frame))


def is_at_its_gate(thread: threading.Thread) -> bool:
    """Whether a thread waits for the baton, or has not begun."""
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is None or frame.f_code.co_filename in (_KERNEL, _BEGINNINGS)


def is_exempt(thread: threading.Thread) -> bool:
    """Whether a thread imports a module or stands in a debugger, both of which wait in real time."""
    frames = _outwards(sys._current_frames().get(thread.ident or 0))
    return any(frame.f_globals.get("__name__") in _EXEMPT for frame in frames)


def _outwards(frame: FrameType | None) -> Iterable[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_in(frame: FrameType, folder: str) -> bool:
    name = frame.f_code.co_filename
    return name.startswith(folder + os.sep) and "site-packages" not in name[len(folder) :]


def _standard_call(outside: list[FrameType]) -> str:
    """Return the outermost standard-library call that waits here, such as Event.wait; "" if there is none."""
    name = ""
    for frame in outside:
        if not _is_in(frame, _STANDARD_LIBRARY):
            break
        if "asyncio" in frame.f_code.co_filename:
            return "an event of its event loop"
        name = frame.f_code.co_qualname
    # A thread's own beginning is not what it waits for, and a lock has a name.
    return "" if name.startswith(("Thread._bootstrap", "_RLock.")) else name


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"


def _await_chain(coroutine: Any) -> list[str]:
    """Return the place of a suspended coroutine, then of what it awaits, and so on."""
    entries = []
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        entries.append((frame, frame.f_lineno))
        coroutine = coroutine.cr_await
    summary = traceback.StackSummary.extract(iter(entries[-_STACK_LINES:]))
    return [f"{line.filename}:{line.lineno} {line.name}" for line in summary]
