"""Node modes: whether the waits inside a graph are async, sync, or block the event loop.

    own              each method as it is: async runs await the async client, and cancelling them cuts it
    sync             async runs hand the sync method to a worker thread, which cannot be cancelled
    blocking   async runs call the sync method on the event loop, which hears nothing until it returns

Sync runs use sync methods under all three. An async deadline is as good as what it can interrupt: `sync` lets it leave
its calls behind, and `blocking` keeps it from being noticed at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Literal, TypeVar, get_args

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import BaseTool, StructuredTool
from langchain_openai import ChatOpenAI

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import LlmSettings
from docmind_lab.core.sync_async import Operation
from docmind_lab.network import HttpClients
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


class SyncChatOpenAI(ChatOpenAI):
    """A ChatOpenAI without an async side: an async run of it is a sync call in a worker thread.

    It is what LangChain makes of any chat model that has no `_agenerate`. What cuts the call is its own timeout and
    the deadline at the network seam, if one is propagated; a cancelled task only stops waiting for it.
    """

    node_mode: ClassVar[NodeMode] = "sync"

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        manager = None if run_manager is None else run_manager.get_sync()
        result: ChatResult = await CALL_SYNC[self.node_mode](
            self._generate, messages, stop=stop, run_manager=manager, **kwargs
        )
        return result


class BlockingChatOpenAI(SyncChatOpenAI):
    """A ChatOpenAI whose async side blocks the event loop during each call, a common mistake."""

    node_mode: ClassVar[NodeMode] = "blocking"


MODEL_CLASSES: dict[NodeMode, type[ChatOpenAI]] = {
    "own": ChatOpenAI,
    "sync": SyncChatOpenAI,
    "blocking": BlockingChatOpenAI,
}
"""The chat model of each mode."""


def chat_model(mode: NodeMode, llm: LlmSettings, base_url: str, http: HttpClients, **options: Any) -> ChatOpenAI:
    """Build the chat model of a system over its HTTP clients. Raises: ConfigurationError: there is no such mode."""
    return MODEL_CLASSES[checked_node_mode(mode)](
        model=llm.model,
        base_url=base_url,
        api_key=llm.api_key,
        http_client=http.openai,
        http_async_client=http.openai_async,
        **options,
    )


def tool_in_mode(tool: BaseTool, mode: NodeMode) -> BaseTool:
    """Return the tool with an async side of this mode; only a `StructuredTool` of a function is changed."""
    if mode == "own" or not isinstance(tool, StructuredTool) or tool.func is None:
        return tool
    call_sync, function = CALL_SYNC[mode], tool.func

    async def coroutine(**arguments: Any) -> Any:
        return await call_sync(function, **arguments)

    return tool.model_copy(update={"coroutine": coroutine})
