"""What a run has begun and not ended: its threads, the jobs in its pools, the tasks of its event loops."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from docmind_lab.virtual_time.reports import place_of_code, waiting_for_work

if TYPE_CHECKING:
    from docmind_lab.virtual_time.kernel import Kernel


# A pool's worker is named by the number of its pool and its own, which differ from run to run.
_NUMBERS = re.compile(r"(-\d+)?_\d+$")


@dataclass(frozen=True)
class LeftAtWork:
    """Something that a run has begun and that has not ended.

    Args:
        kind: A thread, a job of a pool, or a task of an event loop.
        name: Of the code that began a thread, of the pool's worker, or of the task's coroutine.
        where: File, line and function at which it waits; empty if that is unknown.
        thread: Name of its thread; empty for a task.
    """

    kind: Literal["thread", "job", "task"]
    name: str
    where: str = ""
    thread: str = ""


def left_at_work(kernel: Kernel) -> list[LeftAtWork]:
    """Return what is still at work in a run, without idle workers of pools and the calling thread."""
    frames, found = sys._current_frames(), list[LeftAtWork]()
    for actor in kernel.actors:
        frame = frames.get(actor.thread.ident or 0)
        if actor is kernel.main or actor.thread is threading.current_thread():
            continue
        if actor.ends_count:
            found.append(LeftAtWork("thread", actor.started_at or actor.name, place_of_code(frame), actor.name))
        elif waiting_for_work(frame) is None:
            found.append(LeftAtWork("job", _NUMBERS.sub("", actor.name), place_of_code(frame), actor.name))
    for loop in kernel.loops:
        for task in () if loop.is_closed() else asyncio.all_tasks(loop):
            coroutine = task.get_coro()
            name = getattr(coroutine, "__qualname__", "") or task.get_name()
            found.append(LeftAtWork("task", name, place_of_code(getattr(coroutine, "cr_frame", None))))
    return found
