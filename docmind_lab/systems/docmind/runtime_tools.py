"""Build tools that receive the runtime of their graph, at a low cost for each call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool, create_schema_from_function


def runtime_tool(
    function: Callable[..., Any],
    coroutine: Callable[..., Awaitable[Any]] | None = None,
    *,
    name: str,
    description: str,
    **options: Any,
) -> BaseTool:
    """Return a tool of a function that takes `runtime`, which LangGraph brings. coroutine: for async runs."""

    async def at_once(**arguments: Any) -> Any:
        return function(**arguments)

    coroutine = coroutine or at_once
    for each in (function, coroutine):
        # LangChain reads these at every call of the tool, and would evaluate them each time they are text.
        each.__annotations__ = get_type_hints(each, include_extras=True)
    # LangChain dumps the arguments of every call, as the schema has them, into plain values: of a schema that names
    # the runtime, the whole state.
    arguments = create_schema_from_function(name, function, include_injected=False)
    return StructuredTool.from_function(
        func=function, coroutine=coroutine, name=name, description=description, args_schema=arguments, **options
    )
