"""A checkpointer that hands everything on to another one, and may refuse what is to be written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)


class PassingSaver(BaseCheckpointSaver[Any]):
    """Reads and writes through, sync and async; `instead_of_put` has a look at every checkpoint before it is put."""

    def __init__(self, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

    def instead_of_put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig | None:
        """None to have the checkpoint put; else it is put nowhere, and this is what the run is told."""
        return None

    @property
    def config_specs(self) -> list[Any]:
        """The inner checkpointer's."""
        return self.inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The inner checkpointer's."""
        return self.inner.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read through."""
        return self.inner.get_tuple(config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """Read through."""
        return self.inner.list(config, **options)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put, unless there is something to be told instead."""
        told = self.instead_of_put(config, checkpoint, metadata)
        return self.inner.put(config, checkpoint, metadata, new_versions) if told is None else told

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write through."""
        self.inner.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete through."""
        self.inner.delete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read through."""
        return await self.inner.aget_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Read through."""
        async for item in self.inner.alist(config, **options):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put, unless there is something to be told instead."""
        told = self.instead_of_put(config, checkpoint, metadata)
        return await self.inner.aput(config, checkpoint, metadata, new_versions) if told is None else told

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write through."""
        await self.inner.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete through."""
        await self.inner.adelete_thread(thread_id)
