"""Node modes: whether the waits inside a graph are async, sync, or block the event loop.

    own              each method as it is: async runs await the async client, and cancelling them cuts it
    sync             async runs hand the sync method to a worker thread, which cannot be cancelled
    blocking   async runs call the sync method on the event loop, which hears nothing until it returns

Sync runs use sync methods under all three. An async deadline is as good as what it can interrupt: `sync` lets it leave
its calls behind, and `blocking` keeps it from being noticed at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, get_args

from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool, StructuredTool

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.sync_async import Operation
from docmind_lab.systems.base.observer import as_thread_work

NodeMode = Literal["own", "sync", "blocking"]
NODE_MODES: tuple[NodeMode, ...] = get_args(NodeMode)
Result = TypeVar("Result")


def checked_node_mode(mode: str) -> NodeMode:
    """Return the mode if it exists. Raises: ConfigurationError naming the modes."""
    for each in NODE_MODES:
        if mode == each:
            return each
    raise ConfigurationError(f"node_mode must be one of {', '.join(NODE_MODES)}, not {mode!r}")


def effective_node_mode(of_alternative: str, mode: NodeMode) -> str:
    """Return the level of `node_mode` in the tables: an alternative that calls the sync methods has no choice."""
    return of_alternative if of_alternative == "sync" or mode == "own" else mode


async def in_thread(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Run the function in a thread of the event loop's pool, as LangGraph and LangChain run sync code.

    Cancelled, it is waited for no longer; the thread goes on to the function's end, and is work of its run until then.
    """
    return await run_in_executor(None, as_thread_work, function, *arguments, **options)


async def _on_loop(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Run the function on the event loop, which it blocks meanwhile."""
    return function(*arguments, **options)


CALL_SYNC: dict[NodeMode, Callable[..., Awaitable[Any]]] = {"sync": in_thread, "blocking": _on_loop}
"""How an async run calls a sync function, for each mode but "own"."""


def in_mode(mode: NodeMode, operation: Operation) -> Operation:
    """Return the operation with an async side of this mode."""
    call_sync = CALL_SYNC.get(mode)
    return operation if call_sync is None else Operation(operation.blocking, lambda: call_sync(operation.blocking))


def tool_in_mode(tool: BaseTool, mode: NodeMode) -> BaseTool:
    """Return the tool with an async side of this mode; only a `StructuredTool` of a function is changed."""
    if mode == "own" or not isinstance(tool, StructuredTool) or tool.func is None:
        return tool
    call_sync, function = CALL_SYNC[mode], tool.func

    async def coroutine(**arguments: Any) -> Any:
        return await call_sync(function, **arguments)

    return tool.model_copy(update={"coroutine": coroutine})
