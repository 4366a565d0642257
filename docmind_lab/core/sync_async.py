"""Logic that is written once for sync and async code: a generator that yields what it waits for, and two drivers.

    def answer(question) -> Steps[str]:
        documents = yield search(question)               # an Operation
        ...

    finish(answer(question))            await afinish(answer(question))

A driver waits for what the steps yield and sends back the result, or throws what was raised into them at that place. So
`try`, `with` and `finally` in the steps mean what they say in sync and in async code; cancellation arrives there too.

`in_daemon_thread` gives a blocking call a thread of its own, and a future of its result.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

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


def on_a_loop(function: Callable[[], Coroutine[Any, Any, Result]]) -> Steps[Result]:
    """Return steps that are one coroutine, for code that has no sync form."""
    result: Result = yield Operation(lambda: asyncio.run(function()), function)
    return result


def in_daemon_thread(function: Callable[[], Result], name: str) -> Future[Result]:
    """Call the function in a daemon thread of this name, with the caller's context; return the future of its result."""
    future: Future[Result] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        # From here on a cancellation of whoever waits no longer touches the future.
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, as a pool would
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, name=name, daemon=True).start()
    return future
