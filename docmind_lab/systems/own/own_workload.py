"""The workload `own`: a user's compiled graph, run unchanged under any alternative."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel

from docmind_lab.alternatives.base import Outcome, Runnable
from docmind_lab.alternatives.bound import bound, copy_with
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.alternatives.passing_saver import PassingSaver
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.core.levels import NAN
from docmind_lab.network.recorder import Recorder
from docmind_lab.services.endpoint_shape import Unanswered, in_words
from docmind_lab.systems.base.node_modes import NodeMode
from docmind_lab.systems.base.questions import Question
from docmind_lab.systems.own.doorway import RunDoorway
from docmind_lab.systems.own.graph_calls import GraphCallbacks
from docmind_lab.systems.own.inputs import GraphInput, declared_outputs, input_keys, share_of_gold
from docmind_lab.systems.own.own_requests import (
    ANSWERED_BY_A_ROW,
    Destinations,
    RunObserver,
    begin_observing,
    drop_hooks,
    end_observing,
    keep_hooks,
)
from docmind_lab.systems.own.run_settings import RunSettings, StoreMaker, store_for_run
from docmind_lab.virtual_time import current_clock, outside_simulation


class NotingSaver(PassingSaver):
    """A checkpointer that passes everything through, and records every put as the event `checkpoint_put`."""

    def __init__(self, inner: BaseCheckpointSaver[Any], recorder: Recorder) -> None:
        super().__init__(inner)
        self._recorder = recorder

    def answer_instead(self, operation: str, *arguments: Any) -> tuple[Any] | None:
        """Record a put, and pass every operation on."""
        if operation in ("put", "aput"):
            _, _, metadata, _ = arguments
            self._recorder.event("checkpoint_put", step=metadata.get("step", 0))
        return None


_OF_LANGGRAPH = "langgraph.checkpoint."


def _is_outside(saver: BaseCheckpointSaver[Any]) -> bool:
    """Whether LangGraph's own checkpointer keeps its threads outside the process; another's is taken as it is."""
    return type(saver).__module__.startswith(_OF_LANGGRAPH) and not isinstance(saver, InMemorySaver)


class OutsideSaver(PassingSaver):
    """A checkpointer whose store is outside the process. It is reached in real time, while virtual time stands still.

    So a file or a socket is no wait of the run, and a write takes no virtual time. A checkpointer that was made on an
    event loop, such as `AsyncSqliteSaver`, works on that loop, which is none of the run's.
    """

    @property
    def _loop(self) -> asyncio.AbstractEventLoop | None:
        loop = getattr(self.inner, "loop", None)  # as LangGraph's async checkpointers call it
        return loop if isinstance(loop, asyncio.AbstractEventLoop) and loop.is_running() else None

    def pass_on(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Pass an operation on in real time."""
        with outside_simulation():
            return super().pass_on(operation, *arguments, **options)

    async def pass_on_async(self, operation: str, *arguments: Any, **options: Any) -> Any:
        """Pass an async operation on, to the checkpointer's own loop if it has one."""
        work, loop = super().pass_on_async(operation, *arguments, **options), self._loop
        if loop is None:
            return await work
        with outside_simulation():
            return asyncio.run_coroutine_threadsafe(work, loop).result()


# A thread that sleeps longer than this in a node is no longer observed when it wakes up.
_ORPHAN_PATIENCE_S = 3600.0


class OwnWorkload:
    """A user's graph as a workload.

    name: level in the tables. destinations: where its requests go. deadline_key: the key of its input that takes the
    deadline, an instant of `time.monotonic()`, if the input has one of that name. store: makes the store of one run;
    None for the graph's own, or else an empty one in memory, such as LangGraph's server gives to every graph. make:
    makes the graph of one run from its configuration, and leaves to the stack what is to be closed after the run; None
    where one graph serves all runs.

    goes_on_made_up: whether a run counts in which requests that no service answers got made-up answers. unanswered:
    those of all runs that are over.

    `documents_count` counts what the state has under `documents`. `source_recall` is NaN: it is unknown what there was
    to find. `answer_score` is the share of an input's gold texts that the answer states, case aside; NaN without gold.
    """

    def __init__(
        self,
        name: str,
        graph: Pregel[Any, Any, Any, Any],
        destinations: Destinations,
        deadline_key: str = DEADLINE_KEY,
        store: StoreMaker | None = None,
        make: Callable[[Mapping[str, Any], contextlib.ExitStack], Pregel[Any, Any, Any, Any]] | None = None,
    ) -> None:
        self.name, self.graph, self.destinations, self._store, self._make = name, graph, destinations, store, make
        self.state_key = deadline_key if deadline_key in input_keys(graph) else ""
        self._outputs = declared_outputs(graph)
        self.goes_on_made_up = False
        self.unanswered: dict[Unanswered, None] = {}
        self._observers: dict[str, RunObserver] = {}
        self._of_runs: dict[str, contextlib.ExitStack] = {}
        self._holding = False
        self._lock = threading.Lock()

    def runnable(self, recorder: Recorder, question: Question) -> Runnable:
        """Return the graph, observed by the recorder, with a thread, a store and the question's settings of its own."""
        if current_clock() is None:
            self._hold_until_closed()
        observer = RunObserver(recorder, self.destinations)
        self._observers[recorder.run_id] = observer
        begin_observing(observer)
        settings = question.settings if isinstance(question, GraphInput) else RunSettings()
        config = dict(settings.config)
        # Runs in a thread of one name go on from each other, where the graph's own checkpointer keeps it.
        given_thread = config.get("configurable", {}).get("thread_id") if self.graph.checkpointer is None else None
        of_run = {"thread_id": given_thread or recorder.run_id}
        graph: Any = self.graph
        if self._make is not None:
            closing = self._of_runs[recorder.run_id] = contextlib.ExitStack()
            graph = self._make({**config, "configurable": {**config.get("configurable", {}), **of_run}}, closing)
        changed: dict[str, Any] = {}
        saver = self._checkpointer(graph)
        if saver is None and settings.resume:
            saver = InMemorySaver()  # a graph goes on from an interrupt only where its state is kept
        if isinstance(saver, BaseCheckpointSaver):
            changed["checkpointer"] = NotingSaver(saver, recorder)
        if graph.store is None or self._store is not None:
            changed["store"] = store_for_run(self._store)
        graph = copy_with(type(graph), graph, **changed)
        doorway = RunDoorway(observer, self.state_key, settings.resume, self._outputs)
        runnable = bound(graph, context=settings.context_for(graph), doorway=doorway).with_config(
            cast(RunnableConfig, config)
        )
        return runnable.with_config({"configurable": of_run, "callbacks": [GraphCallbacks(observer.calls)]})

    def inputs(self, question: Question) -> dict[str, Any]:
        """Return the graph's input for a question."""
        assert isinstance(question, GraphInput), "a graph of one's own is asked its own inputs"
        return dict(question.given)

    def scores(self, question: Question, outcome: Outcome) -> tuple[float, float]:
        """Return NaN for recall, and the share of gold facts answered. Raises: NotSimulated, see `require_answered`."""
        self.require_answered()
        return NAN, share_of_gold(question, outcome.answer)

    def require_answered(self) -> None:
        """Return if the runs rest on no made-up answer.

        Raises: NotSimulated for what ended a run, or else all the requests that no simulated service answers.
        """
        observers = list(self._observers.values())
        missing = next((observer.missing for observer in observers if observer.missing is not None), None)
        unanswered = list(dict.fromkeys(request for observer in observers for request in observer.unanswered))
        if missing is None and unanswered and not self.goes_on_made_up:
            missing = NotSimulated(f"{in_words(unanswered)}; {ANSWERED_BY_A_ROW}", unanswered)
        if missing is not None:
            self._observers.clear()
            raise missing

    def in_node_mode(self, node_mode: NodeMode) -> Self:
        """Return this workload. Raises: ConfigurationError for any mode but "own", since nodes cannot be changed."""
        if node_mode != "own":
            raise ConfigurationError(f"node_mode {node_mode!r}: the nodes of a graph of your own stay as they are")
        return self

    def forget(self, run_id: str) -> None:
        """Drop a run's checkpoints, and stop observing its requests."""
        observer = self._observers.get(run_id)
        if observer is None:
            return
        with outside_simulation(), contextlib.suppress(Exception):  # what closing raises is no more of the run
            self._of_runs.pop(run_id, contextlib.ExitStack()).close()
        # In virtual time the clock's end does it, when no thread of the run is left that could send anything.
        if observer.clock is None and observer.recorder.quiet():
            end_observing(observer)
        elif observer.clock is None:
            # It is still redirected, and refused by the services, until it ends.
            threading.Thread(target=_end_when_quiet, args=(observer,), name="docmind-own-orphan", daemon=True).start()
        self.unanswered |= dict.fromkeys(observer.unanswered)
        if observer.missing is None and (self.goes_on_made_up or not observer.unanswered):
            del self._observers[run_id]
        saver = self._checkpointer(self.graph)
        if isinstance(saver, BaseCheckpointSaver):
            _delete(saver, run_id)

    def _checkpointer(self, graph: Pregel[Any, Any, Any, Any]) -> Any:
        saver = graph.checkpointer
        if current_clock() is not None and isinstance(saver, BaseCheckpointSaver) and _is_outside(saver):
            return OutsideSaver(saver)
        return saver

    def close(self) -> None:
        """Remove the hooks; the graph's clients belong to the graph."""
        with self._lock:
            if self._holding:
                self._holding = False
                drop_hooks(None)

    def _hold_until_closed(self) -> None:
        # Runs overlap and follow each other; to put hooks in place for each would be work within its budget.
        with self._lock:
            if not self._holding:
                self._holding = True
                keep_hooks(None)


def _end_when_quiet(observer: RunObserver) -> None:
    observer.recorder.wait_quiet(_ORPHAN_PATIENCE_S)
    end_observing(observer)


def _delete(saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
    try:
        saver.delete_thread(thread_id)
    except Exception:  # noqa: BLE001 - savers that are async only refuse this in ways of their own
        # A checkpointer that cannot delete keeps a thread that is never used again.
        with contextlib.suppress(Exception):
            shared_loop().run(saver.adelete_thread(thread_id))
