"""A checkpointer whose store is outside the process, such as a file or a server, below a run in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver

from docmind_lab.alternatives.passing_saver import PassingSaver
from docmind_lab.virtual_time import outside_simulation

_OF_LANGGRAPH = "langgraph.checkpoint."


def is_outside(saver: BaseCheckpointSaver[Any]) -> bool:
    """Whether LangGraph's own checkpointer keeps its threads outside the process; another's is taken as it is."""
    return type(saver).__module__.startswith(_OF_LANGGRAPH) and not isinstance(saver, InMemorySaver)


class OutsideSaver(PassingSaver):
    """A checkpointer whose store is outside the process. It is reached in real time, while virtual time stands still.

    So a file or a socket is no wait of the run, and a write takes no virtual time. A checkpointer that was made on an
    event loop, such as `AsyncSqliteSaver`, works on that loop, which is none of the run's.
    """

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        loop = getattr(self.inner, "loop", None)  # as LangGraph's async checkpointers call it
        return loop if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_running() else None

    def passed(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Pass an operation on in real time."""
        with outside_simulation():
            return super().passed(operation, *arguments, **options)

    async def passed_async(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Pass an async operation on, to the checkpointer's own loop if it has one."""
        work, loop = super().passed_async(operation, *arguments, **options), self._loop
        if loop is None:
            return await work
        with outside_simulation():
            return asyncio.run_coroutine_threadsafe(work, loop).result()
