"""A graph node whose logic is written once for sync and async runs: its function yields what it waits for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from docmind_lab.core.sync_async import Operation, Steps, afinish, finish, pause

__all__ = ["Operation", "Steps", "StepsNode", "afinish", "finish", "pause"]


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
