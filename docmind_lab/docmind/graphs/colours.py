"""The colour of what waits inside a graph: model calls and tools that are async, sync, or async in name only.

    own              each method as it is: async runs await the async client, and cancelling them cuts it
    sync             async runs hand the sync method to a worker thread, which nobody can cancel
    blocking_async   async runs call the sync method on the event loop, which hears nothing until it returns

Sync runs use sync methods under all three. An async deadline is as good as what it can interrupt: `sync` lets it leave
its calls behind, and `blocking_async` keeps it from being noticed at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar, get_args

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.docmind.graphs.observer import as_thread_work

Colour = Literal["own", "sync", "blocking_async"]
COLOURS: tuple[Colour, ...] = get_args(Colour)
Result = TypeVar("Result")


def checked_colour(colour: str) -> Colour:
    """The colour, if there is one of that name. Raises: ConfigurationError naming those there are."""
    for known in COLOURS:
        if colour == known:
            return known
    raise ConfigurationError(f"node_colour must be one of {', '.join(COLOURS)}, not {colour!r}")


def colour_that_runs(of_alternative: str, colour: Colour) -> str:
    """Level of `node_colour` in the tables: sync, async or blocking_async.

    of_alternative: which methods the alternative calls, "sync" or "async"; where it calls the sync ones, it has no
    choice.
    """
    return of_alternative if of_alternative == "sync" or colour == "own" else colour


async def _in_thread(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """The function's result, from a thread of the loop's own pool, where LangGraph and LangChain put sync code too.

    Cancelled, it is waited for no longer; the thread goes on to the function's end, and is work of its run until then.
    """
    return await run_in_executor(None, as_thread_work, function, *arguments, **options)


async def _on_the_loop(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """The function's result; nothing else happens on the loop meanwhile."""
    return function(*arguments, **options)


_AWAITED: dict[Colour, Callable[..., Awaitable[Any]]] = {"sync": _in_thread, "blocking_async": _on_the_loop}


class SyncChatOpenAI(ChatOpenAI):
    """A ChatOpenAI without an async side: an async run of it is a sync call in a worker thread.

    It is what LangChain makes of any chat model that has no `_agenerate`. What cuts the call is its own timeout and
    the deadline at the network seam, if one is propagated; a cancelled task only stops waiting for it.
    """

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await _in_thread(self._generate, messages, stop=stop, run_manager=_sync(run_manager), **kwargs)


class BlockingChatOpenAI(ChatOpenAI):
    """A ChatOpenAI whose async side blocks the event loop for as long as a call takes: a common mistake, measured."""

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await _on_the_loop(self._generate, messages, stop=stop, run_manager=_sync(run_manager), **kwargs)


def _sync(run_manager: AsyncCallbackManagerForLLMRun | None) -> CallbackManagerForLLMRun | None:
    return None if run_manager is None else run_manager.get_sync()


MODELS: dict[Colour, type[ChatOpenAI]] = {
    "own": ChatOpenAI,
    "sync": SyncChatOpenAI,
    "blocking_async": BlockingChatOpenAI,
}
"""The chat model of each colour."""


def coloured_tool(tool: BaseTool, colour: Colour) -> BaseTool:
    """The tool as async runs of this colour have it; one that is no `StructuredTool` of a function stays as it is."""
    if colour == "own" or not isinstance(tool, StructuredTool) or tool.func is None:
        return tool
    awaited, function = _AWAITED[colour], tool.func

    async def coroutine(**arguments: Any) -> Any:
        return await awaited(function, **arguments)

    return tool.model_copy(update={"coroutine": coroutine})
