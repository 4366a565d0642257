"""The checkpointer of one trial: opened for it, opened anew after a kill, and a thread as it has it.

A function without a parameter makes one that lives in the process, such as one in memory. A function with a parameter
is given a folder of the trial's own and opens a store outside the process there, such as a file. That store is opened
anew by the process that goes on after a kill, so it has what was committed and nothing else.
"""

from __future__ import annotations

import contextlib
import inspect
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import RESUME

from docmind_lab.alternatives.enforcement.repaired_threads import WAS_CUT
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.crash_test.observation import Saved, comparable, text_of
from docmind_lab.experiments.crash_test.probes import ProbeSaver
from docmind_lab.systems.own.own_workload import OutsideSaver
from docmind_lab.systems.own.references import AnyGraph, one_line
from docmind_lab.virtual_time import outside_simulation

# As LangGraph calls the task that an answer to an interrupt is written for.
_NULL_TASK: Final = str(uuid.UUID(int=0))
# Virtual seconds; a connection on an event loop that is held up is not waited for.
_CLOSE_S = 1.0
_GIVEN_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class OpenedSaver:
    """Opens the checkpointer of one trial below what watches it.

    make: the user's function; None where the graph has its checkpointer already.
    """

    def __init__(self, make: Callable[..., Any] | None) -> None:
        self._make, self._is_async = make, inspect.iscoroutinefunction(make)
        self._is_outside = make is not None and _needs_a_folder(make)
        # Before virtual time begins, so that it is no temporary file of the run.
        self._folder = tempfile.mkdtemp(prefix="docmind-crash-") if self._is_outside else ""
        self._made: BaseCheckpointSaver[Any] | None = None

    def open(self, probe: ProbeSaver) -> None:
        """Make the checkpointer and put it below the probe. Raises: ConfigurationError for what is none."""
        if self._make is None:
            return
        folder = (self._folder,) if self._is_outside else ()
        if self._is_async:
            made = shared_loop().run(self._make(*folder))
        else:
            with outside_simulation() if self._is_outside else contextlib.nullcontext():
                made = self._make(*folder)
        if not isinstance(made, BaseCheckpointSaver):
            raise ConfigurationError(
                f"checkpointer: the function makes a {type(made).__name__}, not a checkpointer of LangGraph"
            )
        self._made = made
        probe.put_above(OutsideSaver(made) if self._is_outside and not self._is_async else made)

    def open_again(self, probe: ProbeSaver) -> None:
        """Open a store outside the process anew, as a process does that goes on after a kill.

        What was not committed on its connection is discarded.
        """
        if not self._is_outside:
            return
        with contextlib.suppress(Exception), outside_simulation():
            if hasattr(self._connection, "_connection"):
                # One of aiosqlite, whose thread has ended with its run. Without anything below, it asks it for nothing.
                self._connection._connection = None
            else:
                self._connection.close()
        self.open(probe)

    def close(self, thread_id: str) -> None:
        """Delete the thread and close the connection of a store outside the process, in the run that opened it."""
        if not self._is_outside:
            return
        if not self._is_async and self._made is not None:
            with contextlib.suppress(Exception), outside_simulation():
                self._made.delete_thread(thread_id)
        close = getattr(self._connection, "close", None)
        with contextlib.suppress(Exception):
            if inspect.iscoroutinefunction(close):
                shared_loop().submit(close()).result(timeout=_CLOSE_S)
            elif close is not None:
                with outside_simulation():
                    close()

    def remove(self) -> None:
        """Remove the folder of the store."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _connection(self) -> Any:
        return getattr(self._made, "conn", None)  # as LangGraph's own checkpointers call it


def _needs_a_folder(make: Callable[..., Any]) -> bool:
    """Whether a function has to be given something: one of Python's own, or one with defaults, has not."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except ValueError:
        return False
    return any(each.default is each.empty and each.kind in _GIVEN_BY_PLACE for each in parameters)


@dataclass(frozen=True)
class SavedThread:
    """The checkpoints of a thread and of its stateful subgraphs, with their pending writes, the oldest first.

    The history is there, since a channel may be kept as the changes from one checkpoint to the next. content: a text
    that is the same for equal content, ids of messages aside.
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
        return None, Saved(is_there=True, error=one_line(error))
    said = state.values.get("messages", ()) if isinstance(state.values, dict) else ()
    cut = [str(each.name) for each in said if isinstance(each, ToolMessage) and each.content == WAS_CUT]
    # An answer is a write of the thread until its node has ended. One of the node's own is an earlier one's, unless the
    # node failed after it.
    answers = {task_id for task_id, channel, _ in latest.pending_writes or () if channel == RESUME}
    asking = [
        each
        for each in state.tasks
        if each.interrupts and not (_NULL_TASK in answers and (each.error or each.id not in answers))
    ]
    waits = sum(len(each.interrupts) for each in asking)
    saved = Saved(True, tuple(state.next), comparable(state.values), "", waits, tuple(cut))
    writes = [(channel, value) for _, channel, value in latest.pending_writes or ()]
    content = text_of([latest.checkpoint["channel_values"], state.values, state.next, writes])
    # Those of a subgraph's one run have a task's id in their name, and no later run reads them.
    own = [each for each in checkpoints or [latest] if ":" not in _namespace_of(each)]
    return SavedThread(tuple(sorted(own, key=lambda each: each.checkpoint["id"])), content), saved


async def _listed(checkpoints: AsyncIterator[CheckpointTuple]) -> list[CheckpointTuple]:
    return [each async for each in checkpoints]


def _namespace_of(checkpoint: CheckpointTuple) -> str:
    return str(checkpoint.config["configurable"].get("checkpoint_ns", ""))
