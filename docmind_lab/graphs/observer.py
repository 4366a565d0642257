"""Seeing a graph at work without touching it: callbacks for its nodes, and a checkpointer that notes each put."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START

from docmind_lab.recorder import Recorder, current_recorder

# LangGraph tags the run of a node itself, and only that, with the step it belongs to.
_NODE_TAG = "graph:step:"


class RunCallbacks(BaseCallbackHandler):
    """Tells a recorder when nodes of any depth, and the graph as a whole, begin and end.

    It runs in the thread or task of the node (`run_inline`), so an orphaned node still reports its end.
    """

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True
    ignore_agent = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._nodes: dict[UUID, tuple[str, str]] = {}

    def on_chain_start(
        self,
        serialized: Mapping[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Something began: a node if LangGraph tagged it so, the graph if it has no parent."""
        if parent_run_id is None:
            self._recorder.work_started(run_id, "graph")
        elif any(tag.startswith(_NODE_TAG) for tag in tags or ()):
            path = str((metadata or {}).get("langgraph_checkpoint_ns", ""))
            names = [part.partition(":")[0] for part in path.split("|")]
            if names[-1] == START:
                return  # where a graph is entered, not a node that anyone wrote
            role = names[0].removesuffix("_agent")
            self._nodes[run_id] = (role, "/".join(names))
            self._recorder.work_started(run_id, "/".join(names))
            self._recorder.event("node_started", role, node="/".join(names))

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Something ended well."""
        self._ended(run_id, "ok")

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Something ended with an exception, cancellation included."""
        self._ended(run_id, type(error).__name__)

    def _ended(self, run_id: UUID, outcome: str) -> None:
        node = self._nodes.pop(run_id, None)
        if node is not None:
            self._recorder.event("node_ended", node[0], node=node[1], outcome=outcome)
        self._recorder.work_ended(run_id)


class ObservedSaver(InMemorySaver):
    """`InMemorySaver` that notes every put with the recorder of the run it belongs to."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Note the put, then put."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.event("checkpoint_put", step=metadata.get("step", 0))
        return super().put(config, checkpoint, metadata, new_versions)
