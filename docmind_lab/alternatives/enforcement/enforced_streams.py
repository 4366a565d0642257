"""Streams of an enforced graph, and callers that leave a call under way.

The run of a stream goes on in a task or thread of its own, and the caller reads its chunks.

A deadline may pass while the caller is busy with a chunk. So the run has a task of its own, which the deadline can
cancel, and the caller's task is never cancelled by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import anyio

from docmind_lab.alternatives.base import Outcome
from docmind_lab.core.errors import CallerLeft, RunCut
from docmind_lab.core.holds import Hold

CallT = TypeVar("CallT")
ResultT = TypeVar("ResultT")

UNWINDING_S = 0.1
"""Seconds within which a call that was cancelled unwinds through its graph; what does not is left behind."""

_END = object()
Finish = Callable[[CallT, Outcome | BaseException], ResultT]
"""Makes the result of a call that has ended in an outcome, or by an exception in its reader."""


class _Ending(Generic[ResultT]):
    """What is there when a stream has ended."""

    _result: ResultT | None = None

    @property
    def result(self) -> ResultT:
        """The result of the run. Raises: RuntimeError while the stream has not ended."""
        if self._result is None:
            raise RuntimeError("the stream has no result yet; read it to its end first")
        return self._result


class AsyncStream(_Ending[ResultT], Generic[CallT, ResultT]):
    """An async iterator over the chunks of a run.

    begin: makes the call, when the first chunk is asked for. run: runs the graph, and gives each chunk to a sink.
    finish: makes the result, in the task of the reader, also when the reader leaves. check: raises what the caller gets
    in place of a result.
    """

    def __init__(
        self,
        begin: Callable[[], CallT],
        run: Callable[[CallT, Callable[[Any], Awaitable[None]]], Awaitable[Outcome]],
        finish: Finish[CallT, ResultT],
        check: Callable[[ResultT], None],
    ) -> None:
        self._begin, self._run, self._finish, self._check = begin, run, finish, check
        self._chunks = self._iterate()

    def __aiter__(self) -> AsyncStream[CallT, ResultT]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Close the stream; a run that has not ended is cut."""
        await self._chunks.aclose()

    async def _iterate(self) -> AsyncGenerator[Any]:
        # One chunk waits at most, so that a graph goes no faster than its reader, as a graph's own stream does.
        sink, source = anyio.create_memory_object_stream[Any](1)
        call = self._begin()

        async def run() -> Outcome:
            with sink:
                return await self._run(call, sink.send)

        task = asyncio.create_task(run())
        end: Outcome | BaseException
        try:
            with source:
                async for chunk in source:
                    yield chunk
            end = await task
        except BaseException as left:
            end = left
            raise
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({task}, timeout=UNWINDING_S)
            elif not task.cancelled() and task.exception() is None:
                end = task.result()  # a reader that leaves after the end has missed some chunks, and no more
            task.add_done_callback(look_at_end)
            self._result = self._finish(call, end)
        self._check(self._result)


class SyncStream(_Ending[ResultT], Generic[CallT, ResultT]):
    """An iterator over the chunks of a run in a thread of its own, otherwise as `AsyncStream`.

    hold: cancelled when the stream is closed before its end.
    """

    def __init__(
        self,
        call: CallT,
        run: Callable[[CallT, Callable[[Any], None]], Outcome],
        finish: Finish[CallT, ResultT],
        check: Callable[[ResultT], None],
        hold: Hold,
    ) -> None:
        self._call, self._run, self._finish, self._check, self._hold = call, run, finish, check, hold
        self._chunks = self._iterate()

    def __iter__(self) -> SyncStream[CallT, ResultT]:
        return self

    def __next__(self) -> Any:
        return next(self._chunks)

    def close(self) -> None:
        """Close the stream; a run that has not ended is cut."""
        self._chunks.close()

    def _iterate(self) -> Generator[Any]:
        chunks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ended: list[Outcome | BaseException] = []

        def sink(chunk: Any) -> None:
            if self._hold.is_cancelled:
                raise RunCut(CallerLeft("the reader has closed the stream", role="graph", source="stream"), self._hold)
            chunks.put(chunk)

        def run() -> None:
            try:
                ended.append(self._run(self._call, sink))
            except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
                ended.append(error)
            finally:
                chunks.put(_END)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(run,), name="docmind-stream", daemon=True).start()
        end: Outcome | BaseException
        try:
            while (chunk := chunks.get()) is not _END:
                yield chunk
            end = ended[0]
            if isinstance(end, BaseException):
                raise end
        except BaseException as left:
            if not ended:
                self._hold.cancel()
            end = ended[0] if ended else left
            raise
        finally:
            self._result = self._finish(self._call, end)
        self._check(self._result)


# ---- callers that leave: `cancel=disconnected(request)`, a cancelled task, a closed stream


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
