"""Callbacks, a checkpointer and helpers for threads that record what a graph does, without changing the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START

from docmind_lab.alternatives.bound import node_names
from docmind_lab.network.recorder import Recorder, current_recorder, note_event

# LangGraph tags the run of a node itself, and only that, with the step it belongs to.
_NODE_TAG = "graph:step:"
Result = TypeVar("Result")


def is_node(tags: Sequence[str] | None) -> bool:
    """Return whether LangGraph has tagged a run of callbacks as a node's."""
    return any(tag.startswith(_NODE_TAG) for tag in tags or ())


def role_of(node: str) -> str:
    """Return the role that a node's name stands for in the tables."""
    return "" if node == START else node.removesuffix("_agent")


def as_thread_work(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Call the function, in a thread with the caller's context, and record it as work of its node."""
    recorder = current_recorder()
    if recorder is None:
        return function(*arguments, **options)
    names = node_names((var_child_runnable_config.get() or {}).get("metadata"))
    with recorder.thread_work(role_of(names[0]), "/".join(names)):
        return function(*arguments, **options)


class RunCallbacks(BaseCallbackHandler):
    """Callback handler that reports to a recorder when nodes of any depth, and the graph, begin and end.

    It runs in the thread or task of the node (`run_inline`), so an orphaned node still reports its end. A cancelled one
    ends with its task, and what it has left in a thread later (`Recorder.thread_work`).
    """

    run_inline = True
    ignore_llm = True
    ignore_chat_model = True
    ignore_retriever = True
    ignore_agent = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self._nodes: dict[UUID, tuple[str, str, float]] = {}

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
        """Report that a node began, if LangGraph tagged it so, or the graph, if there is no parent."""
        if parent_run_id is None:
            self._recorder.work_started(run_id, "graph")
        elif is_node(tags):
            names = node_names(metadata)
            if names[-1] == START:
                return  # where a graph is entered, not a node that anyone wrote
            role, path = role_of(names[0]), "/".join(names)
            self._nodes[run_id] = (role, path, self._recorder.clock.now() - self._recorder.started_at)
            self._recorder.work_started(run_id, path)
            self._recorder.event("node_started", role, node=path)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Report that a node or the graph ended without an error."""
        self._report_end(run_id, "ok")

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Report that a node or the graph ended with an exception, cancellation included."""
        self._report_end(run_id, type(error).__name__)

    def _report_end(self, run_id: UUID, outcome: str) -> None:
        node = self._nodes.pop(run_id, None)
        if node is not None:
            self._recorder.event("node_ended", node[0], node=node[1], outcome=outcome, begun_at_s=node[2])
        self._recorder.work_ended(run_id)


class ObservedSaver(InMemorySaver):
    """An `InMemorySaver` that records every put in the run that it belongs to."""

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Record the put, then store the checkpoint."""
        note_event("checkpoint_put", step=metadata.get("step", 0))
        return super().put(config, checkpoint, metadata, new_versions)
