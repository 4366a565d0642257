"""One call of an enforced graph: what it is held to, what it has streamed, and its result.

The alternative runs the graph through a doorway. The doorway asks the graph for the caller's stream modes beside the
alternative's own, hands the caller's chunks to the caller, and keeps the graph's state as it goes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.runtime import RunControl

from docmind_lab.alternatives.base import (
    INTERRUPT,
    STREAM_MODES,
    Alternative,
    FreeState,
    Outcome,
    RunProgress,
    options_json,
)
from docmind_lab.alternatives.bound import Doorway, bound, node_names
from docmind_lab.alternatives.enforcement.result import (
    CallThread,
    Partial,
    Result,
    StreamedText,
    ToolReturn,
    WrappedUp,
)
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import BudgetError, CallerLeft
from docmind_lab.core.holds import Hold
from docmind_lab.core.levels import TIMEOUT_REASONS

# How an alternative says that it, and not the graph, has ended the run.
_CUT_REASONS = frozenset({*TIMEOUT_REASONS, CallerLeft.stop_reason})
# The modes that a call needs for itself: those of the alternatives, and which nodes are at work.
_OWN_MODES = (*STREAM_MODES, "tasks")


class SilentLog:
    """A `RunLog` that keeps nothing."""

    def event(self, name: str, role: str = "", *, at: float | None = None, **detail: Any) -> None:
        """Do nothing."""

    def share_thread(self) -> None:
        """Do nothing."""

    def work(self, label: str) -> contextlib.AbstractContextManager[None]:
        """Return a block in which nothing is noted."""
        return contextlib.nullcontext()


def node_at_work() -> str:
    """Return the path of the node that the calling code belongs to; empty outside every node."""
    metadata = (var_child_runnable_config.get() or {}).get("metadata") or {}
    return "/".join(node_names(metadata)) or str(metadata.get("langgraph_node", ""))


class HandlerNotes(BaseCallbackHandler):
    """Callback handler that notes for a call when error handlers are at work, which LangGraph streams no task of.

    at_work: the nodes at work, by the id of their task; a handler takes the place of the task that failed.
    """

    run_inline = True
    ignore_llm = ignore_chat_model = ignore_retriever = ignore_agent = True

    def __init__(self, at_work: dict[str, str]) -> None:
        super().__init__()
        self._at_work = at_work
        self._tasks: dict[UUID, str] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **details: Any) -> None:
        """Note the start of an error handler of the outermost graph."""
        metadata = details.get("metadata") or {}
        failed, _, handler = str(metadata.get("langgraph_checkpoint_ns", "")).partition("|")
        names = node_names(metadata)
        # Every run of callbacks inside the handler has the same metadata.
        task = failed.partition(":")[2]
        if handler and len(names) == 1 and self._at_work.get(task, names[0]) != names[0]:
            self._tasks[run_id] = task
            self._at_work[task] = names[0]

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **details: Any) -> None:
        """Note the end of an error handler."""
        self._at_work.pop(self._tasks.pop(run_id, ""), None)


@functools.lru_cache(maxsize=64)
def _options_of(alternative: Hashable) -> str:
    """Return the options of an alternative as JSON; cached, since they never change and each result says them."""
    return options_json(alternative)


def outcome_of_exit(error: BaseException) -> Outcome:
    """Return the outcome of a call that raised `error` in its caller: it failed, waits for a person, or was left."""
    if isinstance(error, GraphInterrupt):
        return Outcome("interrupted", stop_reason="interrupted", error=error)
    if isinstance(error, GraphBubbleUp):
        return Outcome("answered")  # a command to the graph around it
    if isinstance(error, Exception):
        return Outcome("failed", stop_reason="error", error_type=type(error).__name__, error=error)
    return Outcome("timed_out", stop_reason=CallerLeft.stop_reason, error=error)


Sink = Callable[[Any], None]
AsyncSink = Callable[[Any], Awaitable[None]]


@dataclass
class Shape:
    """How the caller wants chunks.

    has_mode: whether a chunk comes with its mode, as it does where a list of modes was asked for. subgraphs: whether
    chunks of graphs inside come too, each with its namespace. version: of LangGraph's chunks, "v1" or "v2".
    """

    modes: frozenset[str]
    has_mode: bool
    subgraphs: bool
    version: str

    @classmethod
    def of(cls, stream_mode: str | Sequence[str] | None, default: Any, subgraphs: bool, version: str) -> Shape:
        """Return the shape for the arguments of a graph's `stream`. default: the graph's own stream mode."""
        chosen = default if stream_mode is None else stream_mode
        modes = frozenset([chosen] if isinstance(chosen, str) else chosen)
        return cls(modes, not isinstance(chosen, str), subgraphs, version)

    @property
    def modes_of_graph(self) -> list[Any]:
        """The modes to ask the graph for."""
        return [*_OWN_MODES, *sorted(self.modes - set(_OWN_MODES))]

    def split(self, part: Any) -> tuple[tuple[str, ...], str, Any]:
        """Return the namespace, the mode and the content of a chunk of the graph."""
        if self.version == "v2":
            return tuple(part["ns"]), part["type"], part["data"]
        if self.subgraphs:
            return part[0], part[1], part[2]
        return (), part[0], part[1]

    def chunk(self, part: Any) -> Any:
        """Return the chunk for the caller."""
        if self.version == "v2" or self.has_mode:
            return part
        return (part[0], part[2]) if self.subgraphs else part[1]


@dataclass
class EnforcedCall(Doorway):
    """One call under way.

    deadline: the nearest that applies. shape: None for a caller that wants the result only. context: of the graph's
    runtime. options: of the graph's `stream`, for every run of it. state_key: the key of the graph's input that takes
    the deadline; empty for none. control: the caller's own stop flag. thread: the graph and its thread. at_work: the
    nodes at work, by the id of their task.
    """

    alternative: Alternative
    deadline: Deadline
    hold: Hold
    channels: Mapping[str, Any]
    shape: Shape | None = None
    context: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    state_key: str = ""
    control: RunControl | None = None
    thread: CallThread | None = None
    sink: Sink | None = None
    async_sink: AsyncSink | None = None
    at_work: dict[str, str] = field(default_factory=dict)
    _finished: int = 0
    # The latest whole state, and the steps since then.
    _latest: Any = None
    _since: list[tuple[str, Any]] = field(default_factory=list)
    # By id. A later state of the step does not say that it waits.
    _interrupts: dict[str, Any] = field(default_factory=dict)

    # The deadline reaches the graph's code by the hold, and has no place in its input or configuration.
    carries_deadline = True

    def __post_init__(self) -> None:
        self.started_at = self.deadline.clock.now()
        self._sent: Any = None

    def around(self, graph: Any) -> Any:
        """Return the graph, to be run through this call."""
        runnable: Any = bound(graph, context=self.context, doorway=self)
        if getattr(graph, "node_error_handler_map", None):
            return runnable.with_config({"callbacks": [HandlerNotes(self.at_work)]})
        return runnable

    # ---- the doorway: see `alternatives.bound.Doorway`

    def stream(
        self, inner: Callable[..., Iterator[Any]], config: Any, inputs: Any, *rest: Any, **options: Any
    ) -> Iterator[Any]:
        """Stream from the graph for the alternative, and to the caller's sink."""
        shape, control = self._shape(), options.get("control")
        for part in inner(self._input(inputs), *rest, **self._options(shape, options)):
            chunk, step = self._take(shape, part)
            if self.control is not None:
                self._pass_drain(control)
            if chunk is not None and self.sink is not None:
                self.sink(chunk[0])
            if step is not None:
                yield step

    async def astream(
        self, inner: Callable[..., AsyncIterator[Any]], config: Any, inputs: Any, *rest: Any, **options: Any
    ) -> AsyncIterator[Any]:
        """`stream`, as an async generator."""
        shape, control = self._shape(), options.get("control")
        async for part in inner(self._input(inputs), *rest, **self._options(shape, options)):
            chunk, step = self._take(shape, part)
            if self.control is not None:
                self._pass_drain(control)
            if chunk is not None:
                if self.sink is not None:
                    self.sink(chunk[0])
                elif self.async_sink is not None:
                    await self.async_sink(chunk[0])
            if step is not None:
                yield step

    def readable_state(self, state: Any) -> FreeState:
        """Return what alternatives read of a state: whether it waits for a person."""
        if isinstance(state, FreeState):
            return state
        waiting = state.get(INTERRUPT) if isinstance(state, Mapping) else None
        return FreeState({INTERRUPT: waiting} if waiting else {})

    def _shape(self) -> Shape:
        return self.shape or Shape(frozenset(), True, False, "v1")

    def _options(self, shape: Shape, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.control is not None and "control" not in options:
            options = {**options, "control": self.control}
        return {
            **self.options,
            **options,
            "stream_mode": shape.modes_of_graph,
            "subgraphs": shape.subgraphs,
            "version": shape.version,
        }

    def _input(self, inputs: Any) -> Any:
        if not self.state_key or not isinstance(inputs, Mapping) or not self.alternative.propagates:
            return inputs
        return {**inputs, self.state_key: self.deadline.at_s}

    def _take(self, shape: Shape, part: Any) -> tuple[tuple[Any] | None, Any]:
        """Return the caller's chunk, if it is one for the caller, and the alternative's, if it is one for that."""
        namespace, mode, content = shape.split(part)
        own, step = not namespace, None
        if own:
            if mode == "tasks":
                self._note_task(content)
            elif mode == "values":
                step = (mode, content)
                # The state that comes with an interrupt is that before the step.
                if not (isinstance(content, dict) and INTERRUPT in content):
                    self._since.clear()
                self._latest = content
            elif mode == "updates":
                step = (mode, content)
                self._since.append(step)
                if INTERRUPT in content:
                    self._interrupts |= {each.id: each for each in content[INTERRUPT] or ()}
        if mode not in shape.modes:
            return None, step
        if own and mode == "values":
            self._sent = content
        return (shape.chunk(part),), step

    def _pass_drain(self, control: RunControl | None) -> None:
        """Ask the alternative's run to stop once the caller's own flag is up."""
        drained = self.control
        if drained is not None and control is not None and drained is not control and drained.drain_requested:
            control.request_drain(drained.drain_reason or "")

    def _note_task(self, content: Mapping[str, Any]) -> None:
        if "triggers" in content:
            self.at_work[content["id"]] = content["name"]
        # A node that ends with an error was at work when the run ended.
        elif not content.get("error"):
            self.at_work.pop(content["id"], None)
            self._finished += not content.get("interrupts")

    # ---- the end

    def _state(self) -> tuple[Any, tuple[Any, ...]]:
        """Return the graph's state with the writes of all nodes that have finished, and its interrupts."""
        state, interrupts = self._latest, tuple(self._interrupts.values())
        if state is not None and not isinstance(state, Mapping):
            return state, interrupts
        if self._since:
            progress = RunProgress(state, self.channels)
            for step in self._since:
                progress.add(step)
            state = progress.state
        return {name: value for name, value in (state or {}).items() if name != INTERRUPT}, interrupts

    def unsent_state(self) -> Any:
        """Return the state after a cut if the caller streams values and has not seen this one; else None."""
        shape = self._shape()
        if shape.version != "v1" or "values" not in shape.modes or not isinstance(self._latest, Mapping):
            return None
        state, _ = self._state()
        if isinstance(self._sent, Mapping) and state == {k: v for k, v in self._sent.items() if k != INTERRUPT}:
            return None
        if shape.subgraphs:
            return ((), "values", state) if shape.has_mode else ((), state)
        return ("values", state) if shape.has_mode else state

    def _texts(self) -> tuple[StreamedText, ...]:
        """Return what answers had said that were cut in nodes at work, and keep no answer any longer."""
        answers, self.hold.answers = self.hold.answers or [], None
        nodes = set(self.at_work.values())
        mine = [answer for answer in answers if answer.work.partition("/")[0] in nodes]
        return tuple(StreamedText(answer.work, text) for answer in mine if (text := answer.text))

    def result(self, outcome: Outcome) -> Result[Any]:
        """Return the result of a run that ended in this outcome."""
        now = self.deadline.clock.now()
        hold, error = self.hold, outcome.error
        tools = tuple(ToolReturn.of(name, output) for name, output in hold.returned or ())
        state, interrupts = self._state()
        reason = outcome.stop_reason
        cut = reason in _CUT_REASONS or isinstance(error, BudgetError)
        # Code that catches everything may have turned the cut of its request into an error of its own.
        cut = cut or (outcome.outcome == "failed" and hold.requests_cut > 0 and hold.is_over)
        waits = bool(interrupts) or outcome.outcome == "interrupted"
        if outcome.outcome == "unfinished" or (cut and not waits):
            kind = "partial" if self._finished else "timed_out"
        elif waits:
            kind, reason = "interrupted", ""
        elif error is not None or outcome.outcome == "failed":
            kind = "failed"
        else:
            kind, reason = "answered", ""
        texts = self._texts()
        return Result(
            outcome=kind,  # type: ignore[arg-type]
            state=state,
            interrupts=interrupts,
            stop_reason="deadline" if kind in ("partial", "timed_out") and reason == "error" else reason,
            cut_at=tuple(dict.fromkeys(self.at_work.values())) if kind in ("partial", "timed_out") else (),
            overrun_s=max(0.0, now - self.deadline.at_s),
            error=error,
            still_running=tuple(dict.fromkeys(hold.still_running)),
            limit_s=self.deadline.limit_s,
            elapsed_s=now - self.started_at,
            requests_cut=hold.requests_cut + hold.requests_refused,
            remaining_at_start_s=max(0.0, self.deadline.at_s - self.started_at),
            calls_cut=tuple(hold.limit_cuts),
            wrapped_up=WrappedUp.of(hold.wrap_ups, max(0.0, self.deadline.at_s - self.started_at)),
            partial=Partial.of(state, texts if kind in ("partial", "timed_out") else (), tools),
            thread=self.thread,
            alternative=self.alternative.name,
            alternative_options=_options_of(cast(Hashable, self.alternative)),
        )
