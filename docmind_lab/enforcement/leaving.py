"""Callers that leave a call under way: `cancel=disconnected(request)`, a cancelled task, a closed stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import CallerLeft
from docmind_lab.core.holds import Hold

UNWINDING_S = 0.1
"""Seconds within which a call that was cancelled unwinds through its graph; what does not is left behind."""


async def until_cancelled(running: Coroutine[Any, Any, Outcome], hold: Hold, cancel: Awaitable[Any] | None) -> Outcome:
    """Return the outcome of a run; that of a caller who has left if `cancel` is done before."""
    if cancel is None:
        try:
            return await running
        except BaseException:
            hold.cancel()
            raise
    task, left = asyncio.ensure_future(running), asyncio.ensure_future(cancel)
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        hold.cancel()
        task.cancel()
        await asyncio.wait({task}, timeout=UNWINDING_S)
        return Outcome("timed_out", stop_reason=CallerLeft.stop_reason)
    finally:
        left.cancel()
        if not task.done():
            hold.cancel()
            task.cancel()
        for ended in (task, left):
            ended.add_done_callback(look_at_end)


def look_at_end(future: asyncio.Future[Any]) -> None:
    """Ask a future that nobody waits for for its exception, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


async def disconnected(request: Any) -> None:
    """Return when the client of a request has left: `agent.ainvoke(…, cancel=disconnected(request))`.

    Args:
        request: A request of Starlette or FastAPI whose body has been read.
    """
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            return
