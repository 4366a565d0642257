"""A fence around a checkpointed thread: once it is closed, an old run cannot write into the thread.

    fence = Fence()
    runnable = fenced(compiled, fence, recorder)
    …                      # run it under any alternative
    fence.close()          # the caller has its answer; whatever still runs puts its checkpoints nowhere

The fence does not stop an abandoned run: the run continues as if its checkpoints were written.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata
from langgraph.graph.state import CompiledStateGraph

from docmind_lab.alternatives.base import RunLog
from docmind_lab.alternatives.passing_saver import PassingSaver


class Fence:
    """A latch that can be closed once; any thread may close it or check it."""

    def __init__(self) -> None:
        self._closed = threading.Event()

    @property
    def is_closed(self) -> bool:
        """Whether the fence is closed, so that writes are kept out."""
        return self._closed.is_set()

    def close(self) -> None:
        """Close the fence: keep out every write that has not begun yet."""
        self._closed.set()


class FencedSaver(PassingSaver):
    """A checkpointer for one run that wraps another one, and stops writing once the fence is closed.

    A blocked put is an event of the run (`checkpoint_blocked`); the run is told the id it wanted, so that it ends as
    it would have ended.
    """

    def __init__(self, inner: BaseCheckpointSaver[Any], fence: Fence, recorder: RunLog | None = None) -> None:
        super().__init__(inner)
        self.fence, self.recorder = fence, recorder

    def instead_of_put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata
    ) -> RunnableConfig | None:
        """Return None until the fence is closed; then the configuration that a put would have returned."""
        if not self.fence.is_closed:
            return None
        if self.recorder is not None:
            self.recorder.event("checkpoint_blocked", step=metadata.get("step", 0))
        configurable = config["configurable"]
        return {
            "configurable": {
                "thread_id": configurable["thread_id"],
                "checkpoint_ns": configurable.get("checkpoint_ns", ""),
                "checkpoint_id": checkpoint["id"],
            }
        }

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes, unless the fence is closed."""
        if not self.fence.is_closed:
            super().put_writes(config, writes, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Put a task's writes, unless the fence is closed."""
        if not self.fence.is_closed:
            await super().aput_writes(config, writes, task_id, task_path)


def fenced(
    runnable: CompiledStateGraph[Any, Any, Any, Any], fence: Fence, recorder: RunLog | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a copy of the graph whose checkpointer stops writing once the fence is closed."""
    inner = runnable.checkpointer
    if not isinstance(inner, BaseCheckpointSaver):
        return runnable
    return runnable.copy({"checkpointer": FencedSaver(inner, fence, recorder)})
