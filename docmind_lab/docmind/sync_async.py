"""One piece of logic for sync and async code: a generator that yields what it waits for, and two drivers.

    def answer(question) -> Steps[str]:
        documents = yield search(question)               # an Operation
        first, second = yield together([check(documents), rank(documents)])
        ...

    finish(answer(question))            await afinish(answer(question))

A driver waits for what the steps yield and sends back the result, or throws what was raised into them at that place. So
`try`, `with` and `finally` in the steps mean what they say in sync and in async code; cancellation arrives there too.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_all
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from docmind_lab.core.clock import Clock
from docmind_lab.core.wall_clock import WALL

Result = TypeVar("Result")


@dataclass(frozen=True)
class Operation:
    """Something to wait for, with its sync and its async form. It begins when it is waited for."""

    blocking: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


Steps = Generator[Operation, Any, Result]


def finish(steps: Steps[Result]) -> Result:
    """What the steps return, each wait in the calling thread. Raises what they raise."""
    try:
        waiting = next(steps)
        while True:
            try:
                got = waiting.blocking()
            except BaseException as error:  # noqa: BLE001 - whatever a wait raises is for the steps to see
                waiting = steps.throw(error)
            else:
                waiting = steps.send(got)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()


async def afinish(steps: Steps[Result]) -> Result:
    """`finish`, async; a cancellation is raised inside the steps where they wait."""
    try:
        waiting = next(steps)
        while True:
            try:
                got = await waiting.awaited()
            except BaseException as error:  # noqa: BLE001 - whatever a wait raises is for the steps to see
                waiting = steps.throw(error)
            else:
                waiting = steps.send(got)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()


def pause(seconds: float, clock: Clock = WALL) -> Operation:
    """Wait for so long."""
    return Operation(lambda: clock.sleep(seconds), lambda: asyncio.sleep(seconds))


def together(branches: Sequence[Steps[Result]], at_once: int | None = None) -> Operation:
    """Wait for branches side by side: their results, in the order given.

    at_once: branches under way at the same time at most; None for all of them. A branch that raises does not stop the
    others; when all have ended, the error of the first of them is raised. Each branch has a copy of the context of
    whoever waits. Blocking, each has a thread that the waiting one does not leave behind.
    """
    limit = max(1, len(branches) if at_once is None else at_once)
    return Operation(lambda: _in_threads(branches, limit), lambda: _in_tasks(branches, limit))


def _in_threads(branches: Sequence[Steps[Result]], limit: int) -> list[Result]:
    if not branches:
        return []
    with ThreadPoolExecutor(min(limit, len(branches)), thread_name_prefix="docmind-branch") as pool:
        futures: list[Future[Result]] = [
            pool.submit(contextvars.copy_context().run, finish, branch) for branch in branches
        ]
        wait_for_all(futures)
    return [future.result() for future in futures]


async def _in_tasks(branches: Sequence[Steps[Result]], limit: int) -> list[Result]:
    free = asyncio.Semaphore(limit)

    async def one(branch: Steps[Result]) -> Result:
        async with free:
            return await afinish(branch)

    tasks = [asyncio.create_task(one(branch)) for branch in branches]
    try:
        if tasks:
            await asyncio.wait(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        # Until they have unwound: what they do last belongs to whoever cancelled them.
        await asyncio.wait(tasks)
        raise
    return [task.result() for task in tasks]


class StepsNode(Runnable[Any, Any]):
    """A node of a graph whose work is steps. function: (state, config) → steps; they return the node's update.

    A runnable, not a function for LangChain to wrap. A wrapped function would be a run of its own inside the run of its
    node, and LangGraph would run a sync function in a thread of an async run.
    """

    name: str

    def __init__(self, name: str, function: Callable[[Any, RunnableConfig], Steps[Any]]) -> None:
        if not inspect.isgeneratorfunction(inspect.unwrap(getattr(function, "func", function))):
            raise TypeError(f"node {name}: its function must be a generator function, which yields what it waits for")
        self.name, self._function = name, function

    def invoke(
        self,
        input: Any,  # noqa: A002 - LangChain's name for it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """The node's update, sync."""
        return finish(self._function(input, config or {}))

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangChain's name for it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """The node's update, async."""
        return await afinish(self._function(input, config or {}))
