"""Write logic once for sync and async code: a generator that yields what it waits for, and two drivers.

    def answer(question) -> Steps[str]:
        documents = yield search(question)               # an Operation
        ...

    finish(answer(question))            await afinish(answer(question))

A driver waits for what the steps yield and sends back the result, or throws what was raised into them at that place. So
`try`, `with` and `finally` in the steps mean what they say in sync and in async code; cancellation arrives there too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from docmind_lab.core.clock import WALL, Clock

Result = TypeVar("Result")


@dataclass(frozen=True)
class Operation:
    """A wait, in a sync and an async form. It begins when a driver waits for it."""

    blocking: Callable[[], Any]
    awaited: Callable[[], Awaitable[Any]]


Steps = Generator[Operation, Any, Result]


def finish(steps: Steps[Result]) -> Result:
    """Run the steps and return their result, each wait in the calling thread. Raises what they raise."""
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
    """`finish`, as a coroutine; a cancellation is raised inside the steps where they wait."""
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
    """Return an operation that waits for so many seconds."""
    return Operation(lambda: clock.sleep(seconds), lambda: asyncio.sleep(seconds))


class StepsNode(Runnable[Any, Any]):
    """A graph node whose function yields its waits. function: (state, config) → steps, which return the update.

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
        """Run the node's steps and return its update."""
        return finish(self._function(input, config or {}))

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangChain's name for it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """`invoke`, as a coroutine."""
        return await afinish(self._function(input, config or {}))
