"""`once`: a tool with an effect, whose repeated call returns the result of the first one.

    agent = create_agent(model, [once(send_letter)], checkpointer=saver, store=store)

LangGraph runs a tool again whose result had not been saved when a run was cut (docs/findings/tool-called-again.md). One
call of a model in one thread is one call of such a tool, however often the thread is resumed.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as as_tool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.config import get_store
from langgraph.errors import GraphInterrupt
from langgraph.store.base import BaseStore

from docmind_lab.alternatives.enforcement.repaired_threads import WAS_CUT
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish

_NAMESPACE: Final = ("docmind_lab", "once")
_SERDE: Final = JsonPlusSerializer()


def once(tool: BaseTool | Callable[..., Any], *, store: BaseStore | None = None) -> BaseTool:
    """Return a tool that runs once for each call of a model in a thread, and whose result is kept.

    A repeated call, as after a resumption, returns the result that was kept. Where the first call was cut midway, is
    still under way or raised an error, a repeated one returns a message that says that it is not known whether it took
    effect (status "error"), and does not call the tool.

    Args:
        tool: A tool, or a function that `langchain_core.tools.tool` takes. It is not changed.
        store: Where results are kept, by thread, id of the call and arguments; the graph's own when left out. It must
            outlive the process.

    Raises:
        ConfigurationError: `tool` is no tool; when it is called: there is no store, the run has no thread, or no model
            has called it.
    """
    made = tool if isinstance(tool, BaseTool) or not callable(tool) else as_tool(tool)
    if not isinstance(made, BaseTool):
        raise ConfigurationError(f"tool is a {type(tool).__name__}, not a tool; decorate a function with @tool")
    result = made.model_copy()
    # What a tool node reads of a tool is the tool's own.
    object.__setattr__(result, "__class__", _once_kind(type(made), store))
    return result


def _once_kind(kind: type[Any], store: BaseStore | None) -> type[Any]:
    """Return a subclass of a tool's class whose runs are looked up in the store first."""

    class Once(kind):  # type: ignore[misc]
        def run(self, tool_input: Any, *rest: Any, **options: Any) -> Any:
            run = functools.partial(super().run, tool_input, *rest, **options)
            return finish(_kept_or_run(Operation(run, run), self, store, tool_input, options))

        async def arun(self, tool_input: Any, *rest: Any, **options: Any) -> Any:
            run = functools.partial(super().arun, tool_input, *rest, **options)
            return await afinish(_kept_or_run(Operation(run, run), self, store, tool_input, options))

    Once.__name__ = Once.__qualname__ = kind.__name__
    return Once


def _kept_or_run(
    run: Operation, tool: BaseTool, store: BaseStore | None, tool_input: Any, options: Mapping[str, Any]
) -> Steps[Any]:
    """Run the tool, or return what is kept of the call. options: of the tool's `run`."""
    call_id = options.get("tool_call_id")
    key = _key_of(tool, tool_input, call_id, (options.get("config") or {}).get("configurable", {}).get("thread_id"))
    kept_in = _graphs_store(tool.name) if store is None else store

    def in_store(operation: str, *value: Any) -> Operation:
        forms = getattr(kept_in, operation), getattr(kept_in, f"a{operation}")
        return Operation(*(functools.partial(form, _NAMESPACE, key, *value) for form in forms))

    kept = yield in_store("get")
    if kept is not None and kept.value["result"] is None:
        return ToolMessage(WAS_CUT, tool_call_id=call_id, name=tool.name, status="error")
    if kept is not None:
        kind, text = kept.value["result"]
        return _SERDE.loads_typed((kind, base64.b64decode(text)))
    yield in_store("put", {"tool": tool.name, "result": None})
    try:
        result = yield run
    except GraphInterrupt:
        # It waits for a person, and LangGraph runs it from its beginning afterwards.
        yield in_store("delete")
        raise
    # What cannot be kept, such as some artifacts, is not known the next time.
    with contextlib.suppress(TypeError, ValueError):
        kind, data = _SERDE.dumps_typed(result)
        yield in_store("put", {"tool": tool.name, "result": (kind, base64.b64encode(data).decode("ascii"))})
    return result


def _key_of(tool: BaseTool, tool_input: Any, call_id: str | None, thread_id: Any) -> str:
    """Return the key of a call. Raises: ConfigurationError for one that cannot be told from others."""
    if not call_id:
        raise ConfigurationError(f"{tool.name} runs once for each tool call; invoke it with the call of a model")
    if not thread_id:
        raise ConfigurationError(
            f'{tool.name} runs once in a thread; give {{"configurable": {{"thread_id": ...}}}} and a checkpointer'
        )
    # Without what the graph injects. Some servers use an id again in a later turn, with other arguments.
    given = {name: tool_input[name] for name in tool.args if name in tool_input} if tool_input else {}
    text = json.dumps([tool.name, given], sort_keys=True, default=str)
    return f"{thread_id}/{call_id}/{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _graphs_store(name: str) -> BaseStore:
    """Return the store of the graph that is running. Raises: ConfigurationError where there is none."""
    try:
        store = get_store()
    except (RuntimeError, KeyError):
        store = None
    if store is None:
        raise ConfigurationError(f"{name} needs a store for its results; compile(store=...), or once(tool, store=...)")
    return store
