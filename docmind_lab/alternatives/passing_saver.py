"""A checkpointer that passes all operations on to another one, and may refuse a checkpoint."""

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
    """Passes reads and writes on to an inner checkpointer; `instead_of_put` can refuse a checkpoint."""

    def __init__(self, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

    def instead_of_put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig | None:
        """Return None to put the checkpoint; otherwise the configuration that `put` returns in its place."""
        return None

    @property
    def config_specs(self) -> list[Any]:
        """The configuration fields of the inner checkpointer."""
        return self.inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel from the inner checkpointer."""
        return self.inner.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint from the inner checkpointer."""
        return self.inner.get_tuple(config)

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints of the inner checkpointer."""
        return self.inner.list(config, **options)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint in the inner checkpointer, unless `instead_of_put` refuses it."""
        replacement = self.instead_of_put(config, checkpoint, metadata)
        return self.inner.put(config, checkpoint, metadata, new_versions) if replacement is None else replacement

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes in the inner checkpointer."""
        self.inner.put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread from the inner checkpointer."""
        self.inner.delete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint from the inner checkpointer, async."""
        return await self.inner.aget_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints of the inner checkpointer, async."""
        async for item in self.inner.alist(config, **options):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint in the inner checkpointer, async, unless `instead_of_put` refuses it."""
        replacement = self.instead_of_put(config, checkpoint, metadata)
        return await self.inner.aput(config, checkpoint, metadata, new_versions) if replacement is None else replacement

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes in the inner checkpointer, async."""
        await self.inner.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread from the inner checkpointer, async."""
        await self.inner.adelete_thread(thread_id)
