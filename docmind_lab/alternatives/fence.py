"""A fence around a checkpointed thread: once it is closed, an old run cannot write into the thread.

    fence = Fence()
    runnable = fenced(compiled, fence, recorder)
    …                      # run it under any alternative
    fence.close()          # the caller has its answer; whatever still runs puts its checkpoints nowhere

The fence does not stop an abandoned run: the run continues as if its checkpoints were written.
"""

from __future__ import annotations

import threading
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint
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

    def answer_instead(self, operation: str, *arguments: Any) -> tuple[Any] | None:
        """Keep an operation out that writes while the fence is closed."""
        return (self._result_of_put(operation, *arguments),) if self.fence.is_closed and "put" in operation else None

    def _result_of_put(
        self, operation: str, config: RunnableConfig, checkpoint: Checkpoint, metadata: Any, *rest: Any
    ) -> RunnableConfig | None:
        """Return what a put would have returned."""
        if operation.endswith("put_writes"):
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


def fenced(
    runnable: CompiledStateGraph[Any, Any, Any, Any], fence: Fence, recorder: RunLog | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a copy of the graph whose checkpointer stops writing once the fence is closed."""
    inner = runnable.checkpointer
    if not isinstance(inner, BaseCheckpointSaver):
        return runnable
    return runnable.copy({"checkpointer": FencedSaver(inner, fence, recorder)})
