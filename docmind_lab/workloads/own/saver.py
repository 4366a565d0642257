"""A checkpointer in front of the one that a user's graph was compiled with: it notes each put, and passes it on."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata

from docmind_lab.graphs.fence import Fence, FencedSaver
from docmind_lab.recorder import Recorder


class NotingSaver(FencedSaver):
    """Reads and writes through; every put is an event of the run (`checkpoint_put`)."""

    def __init__(self, inner: BaseCheckpointSaver[Any], recorder: Recorder) -> None:
        super().__init__(inner, Fence(), recorder)
        self._recorder = recorder

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Note the put, then put."""
        self._recorder.event("checkpoint_put", step=metadata.get("step", 0))
        return super().put(config, checkpoint, metadata, new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Note the put, then put."""
        self._recorder.event("checkpoint_put", step=metadata.get("step", 0))
        return await super().aput(config, checkpoint, metadata, new_versions)
