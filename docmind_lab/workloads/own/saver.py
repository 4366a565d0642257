"""A checkpointer in front of the one that a user's graph was compiled with: it notes each put, and passes it on."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata

from docmind_lab.alternatives.passing_saver import PassingSaver
from docmind_lab.network.recorder import Recorder


class NotingSaver(PassingSaver):
    """Reads and writes through; every put is an event of the run (`checkpoint_put`)."""

    def __init__(self, inner: BaseCheckpointSaver[Any], recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    def instead_of_put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig | None:
        """None, after noting the put."""
        self._recorder.event("checkpoint_put", step=metadata.get("step", 0))
        return None
