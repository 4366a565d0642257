"""A checkpointer that passes all operations on to another one, through one method that a subclass can change."""

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
    """Passes reads and writes on to an inner checkpointer.

    A subclass overrides `passed` and `passed_async`, by which every operation goes.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=inner.serde)
        self.inner = inner

    def passed(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Return what an operation of the inner checkpointer returns; `list` as a list."""
        result = getattr(self.inner, operation)(*arguments, **options)
        return list(result) if operation == "list" else result

    async def passed_async(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """`passed`, of an async method, whose name begins with "a"."""
        result = getattr(self.inner, operation)(*arguments, **options)
        return [item async for item in result] if operation == "alist" else await result

    @property
    def config_specs(self) -> list[Any]:
        """The configuration fields of the inner checkpointer."""
        return self.inner.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the next version of a channel from the inner checkpointer."""
        return self.inner.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint."""
        found: CheckpointTuple | None = self.passed("get_tuple", config)
        return found

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        """List checkpoints."""
        return iter(self.passed("list", config, **options))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint."""
        put: RunnableConfig = self.passed("put", config, checkpoint, metadata, new_versions)
        return put

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes."""
        self.passed("put_writes", config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self.passed("delete_thread", thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, async."""
        found: CheckpointTuple | None = await self.passed_async("aget_tuple", config)
        return found

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, async."""
        for item in await self.passed_async("alist", config, **options):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Put a checkpoint, async."""
        put: RunnableConfig = await self.passed_async("aput", config, checkpoint, metadata, new_versions)
        return put

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes, async."""
        await self.passed_async("aput_writes", config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread, async."""
        await self.passed_async("adelete_thread", thread_id)
