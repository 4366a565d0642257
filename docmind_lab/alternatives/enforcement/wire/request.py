"""The deadline of a request that came in, which holds the work of its answer, and nothing else.

A task that the request has made is under its deadline only if it is awaited. asyncio says so at the cut: whoever is
cancelled has what it awaits cancelled too. So a task is told the deadline, and cut by its cancellation alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Coroutine, Generator
from types import FrameType, TracebackType
from typing import Any, Final

from docmind_lab.alternatives.enforcement.scope import deadline
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.holds import current_hold, hold_scope

# Functions of asyncio through which a task is made for whoever calls them.
_MAKERS: Final = {
    "asyncio.base_events": {"create_task"},
    "asyncio.tasks": {"create_task", "ensure_future", "_ensure_future"},
}


class request_deadline(deadline):  # noqa: N801 - used as a function
    """`async with deadline(...)` around the work of one request.

    What a request that was answered has left behind goes on, and so do the tasks of one that was cut that nobody
    awaits. On an event loop with a task factory of somebody else, a request that is cut takes its tasks along.
    """

    async def __aenter__(self) -> Deadline:
        in_force = await super().__aenter__()
        assert self.hold is not None, "a block that was entered has a hold"
        loop = asyncio.get_running_loop()
        if loop.get_task_factory() is None:
            loop.set_task_factory(_make_task)
        self.hold.frees_tasks = loop.get_task_factory() is _make_task
        return in_force

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.hold is not None, "a block that was entered has a hold"
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            self.hold.let_go()
        if kind is None:
            self.hold.release()


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any] | Generator[Any, None, Any], **options: Any
) -> asyncio.Task[Any]:
    """Return a new task, as a loop without a task factory does; under a request, with a hold of its own."""
    hold = current_hold()
    if hold is None or not hold.frees_tasks or options.get("context") is not None or _is_awaited(sys._getframe(1)):
        return asyncio.Task(coroutine, loop=loop, **options)
    own, context = hold.for_task(), contextvars.copy_context()
    context.run(hold_scope(own).__enter__)
    task = asyncio.Task(coroutine, loop=loop, **{**options, "context": context})
    own.tie(task)
    return task


def _is_awaited(frame: FrameType | None) -> bool:
    """Whether the library that makes a task awaits it: a task group, `gather`, `wait_for`, a thread that waits.

    Such a task is cut as its maker is, at the instant of the deadline, and so are the threads that it waits for.
    """
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name not in _MAKERS.get(module, ()):
            return str(module).partition(".")[0] in ("asyncio", "anyio")
        frame = frame.f_back
    return False
