"""A graph node whose logic is written once for sync and async runs: its function yields what it waits for, if so."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import StateGraph

from docmind_lab.core.sync_async import afinish, finish


def add_steps(graph: StateGraph[Any, Any, Any, Any], **functions: Callable[[Any, RunnableConfig], Any]) -> None:
    """Add a node for each function, under its name; see `StepsNode`."""
    for name, function in functions.items():
        graph.add_node(name, StepsNode(name, function))


class StepsNode(Runnable[Any, Any]):
    """A graph node. function: (state, config) → the update, or steps that yield its waits and return the update.

    A runnable, not a function for LangChain to wrap. A wrapped function would be a run of its own inside the run of its
    node, and LangGraph would run a sync function in a thread of an async run.
    """

    name: str

    def __init__(self, name: str, function: Callable[[Any, RunnableConfig], Any]) -> None:
        self.name, self._function = name, function

    def invoke(
        self,
        input: Any,  # noqa: A002 - LangChain's name for it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run the node's steps and return its update."""
        update = self._function(input, config or {})
        return finish(update) if isinstance(update, Generator) else update

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - LangChain's name for it
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Any:
        """`invoke`, as a coroutine."""
        update = self._function(input, config or {})
        return await afinish(update) if isinstance(update, Generator) else update
