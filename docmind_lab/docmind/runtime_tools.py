"""Tools that are given the runtime of their graph, made so that LangChain calls them cheaply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

from langchain_core.tools import BaseTool, StructuredTool, create_schema_from_function


def runtime_tool(
    function: Callable[..., Any],
    coroutine: Callable[..., Awaitable[Any]],
    *,
    name: str,
    description: str,
    **options: Any,
) -> BaseTool:
    """A structured tool of a function that takes `runtime: ToolRuntime`, and the same function async.

    Its arguments are those of the function but `runtime`, which LangGraph brings. options: of
    `StructuredTool.from_function`.
    """
    for given in (function, coroutine):
        # LangChain reads these at every call of the tool, and would evaluate them each time they are text.
        given.__annotations__ = get_type_hints(given, include_extras=True)
    # LangChain dumps the arguments of every call, as the schema has them, into plain values: of a schema that names
    # the runtime, the whole state.
    arguments = create_schema_from_function(name, function, include_injected=False)
    return StructuredTool.from_function(
        func=function, coroutine=coroutine, name=name, description=description, args_schema=arguments, **options
    )
