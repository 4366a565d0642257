"""A thread as its checkpointer has it: read once, compared, and copied for a question that is to change nothing."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.experiments.crash_test.observation import Saved, comparable, text_of
from docmind_lab.workloads.own.references import AnyGraph


@dataclass(frozen=True)
class SavedThread:
    """The checkpoints of a thread and of its stateful subgraphs, with their pending writes.

    The history is there, since a channel may be kept as the changes from one checkpoint to the next.

    checkpoints: the oldest first. content: a text that is the same for equal content, ids of messages aside.
    """

    checkpoints: tuple[CheckpointTuple, ...]
    content: str

    def copied(self, thread_id: str) -> InMemorySaver:
        """Return a checkpointer in memory that has the thread under another id."""
        saver = InMemorySaver()
        for each in self.checkpoints:
            parent = (each.parent_config or {}).get("configurable", {}).get("checkpoint_id")
            there: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": _namespace_of(each)}}
            if parent:
                there["configurable"]["checkpoint_id"] = parent
            kept = each.checkpoint["channel_values"]
            versions = {key: value for key, value in each.checkpoint["channel_versions"].items() if key in kept}
            place = saver.put(there, each.checkpoint, each.metadata, versions)
            writes: dict[str, list[tuple[str, Any]]] = {}
            for task_id, channel, value in each.pending_writes or ():
                writes.setdefault(task_id, []).append((channel, value))
            for number, (task_id, of_task) in enumerate(writes.items()):
                saver.put_writes(place, of_task, task_id, f"{number:06}")  # they are read in the order of their paths
        return saver


def read_thread(graph: AnyGraph, thread_id: str, *, async_only: bool) -> tuple[SavedThread | None, Saved]:
    """Return a thread as it is kept, and what it says; None if it is not there or cannot be read.

    async_only: whether the checkpointer is asked on an event loop.
    """
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    saver = graph.checkpointer
    assert isinstance(saver, BaseCheckpointSaver)
    checkpoints: list[CheckpointTuple] = []
    try:
        if async_only:
            latest = shared_loop().run(saver.aget_tuple(config))
            state = shared_loop().run(graph.aget_state(config))
        else:
            latest = saver.get_tuple(config)
            state = graph.get_state(config)
        if latest is None:
            return None, Saved()
        with contextlib.suppress(NotImplementedError):
            checkpoints = shared_loop().run(_listed(saver.alist(config))) if async_only else list(saver.list(config))
    except Exception as error:  # noqa: BLE001 - that it cannot be read is what is looked for
        words = (str(error).splitlines() or [""])[0][:300]
        return None, Saved(is_there=True, error=f"{type(error).__name__}: {words}")
    saved = Saved(True, tuple(state.next), comparable(state.values), "", len(state.interrupts))
    writes = [(channel, value) for _, channel, value in latest.pending_writes or ()]
    content = text_of([latest.checkpoint["channel_values"], state.values, state.next, writes])
    # Those of a subgraph's one run have a task's id in their name, and no later run reads them.
    own = [each for each in checkpoints or [latest] if ":" not in _namespace_of(each)]
    return SavedThread(tuple(sorted(own, key=lambda each: each.checkpoint["id"])), content), saved


async def _listed(found: AsyncIterator[CheckpointTuple]) -> list[CheckpointTuple]:
    return [each async for each in found]


def _namespace_of(checkpoint: CheckpointTuple) -> str:
    return str(checkpoint.config["configurable"].get("checkpoint_ns", ""))
