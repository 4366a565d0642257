"""A checkpointer whose store is outside the process, such as a file or a server, below a run in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver

from docmind_lab.alternatives.passing_saver import PassingSaver
from docmind_lab.virtual_time import outside_simulation

Result = TypeVar("Result")

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

    async def _done(self, work: Coroutine[Any, Any, Result]) -> Result:
        loop = self._loop
        if loop is None:
            return await work
        with outside_simulation():
            return asyncio.run_coroutine_threadsafe(work, loop).result()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint."""
        with outside_simulation():
            return super().get_tuple(config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints."""
        with outside_simulation():
            return iter(list(super().list(config, **options)))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint."""
        with outside_simulation():
            return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes."""
        with outside_simulation():
            super().put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        with outside_simulation():
            super().delete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, async."""
        return await self._done(super().aget_tuple(config))

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, async."""
        listed = super().alist(config, **options)

        async def whole() -> list[CheckpointTuple]:
            return [item async for item in listed]

        for item in await self._done(whole()):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint, async."""
        return await self._done(super().aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes, async."""
        await self._done(super().aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread, async."""
        await self._done(super().adelete_thread(thread_id))
