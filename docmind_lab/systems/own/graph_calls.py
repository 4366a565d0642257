"""The calls of a user's graph that are under way: the node and the call each belongs to, and when each is over.

A model's or retriever's attempts are the requests that are sent while it is under way; where none is seen (a model in
this process, a client that is not httpx's), one attempt spans the call. A tool's call is one attempt from its start to
its end; requests inside it are calls of their own, below it. Callbacks alone say which node a call belongs to.

calls = RunCalls(recorder)
graph.with_config({"callbacks": [GraphCallbacks(calls)]})
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from langchain_core.outputs import LLMResult

from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.errors import RunCut
from docmind_lab.network.attempts import Attempt, AttemptOutcome, CallKind, LogicalCall, call_scope
from docmind_lab.network.recorder import Recorder
from docmind_lab.systems.base.observer import RunCallbacks, is_node, role_of

_PUSHED = "__pregel_push"


@dataclass(frozen=True)
class Place:
    """The node that is at work, and its position in the run.

    role: of the outermost node, as the tables have it. path: the nodes from the outermost to this one. position:
    "step.branch", the step of the outermost graph and which of the tasks that `Send` started side by side it is: the
    same for every alternative.
    """

    role: str = ""
    path: tuple[str, ...] = ()
    step: int = 0
    branches: tuple[int, ...] = ()

    @property
    def position(self) -> str:
        """The position as `recorder.call` takes it: "step.branch"."""
        return f"{self.step}.{'-'.join(str(branch) for branch in self.branches) or '0'}"

    def __str__(self) -> str:
        return "/".join(self.path)


NOWHERE = Place()
"""Outside every node."""


class RunTree:
    """Maps each run of LangChain's callbacks to its node. Safe to use from any thread."""

    def __init__(self) -> None:
        self._above: dict[UUID, UUID | None] = {}
        self._places: dict[UUID, Place] = {}
        self._latest: dict[int, Place] = {}

    def note_start(
        self, run_id: UUID, above: UUID | None, tags: Sequence[str] | None, metadata: Mapping[str, Any] | None
    ) -> None:
        """Note that a run began; it is a node's if LangGraph tagged it so."""
        self._above[run_id] = above
        if is_node(tags):
            self._places[run_id] = place = _place(metadata or {}, self.place_of(above))
            self._latest[threading.get_ident()] = place

    def latest_in(self, thread_id: int) -> Place:
        """Return the node that began last in a thread; NOWHERE if none did."""
        return self._latest.get(thread_id, NOWHERE)

    def place_of(self, run_id: UUID | None) -> Place:
        """Return the nearest node at or above a run; NOWHERE if there is none."""
        while run_id is not None:
            place = self._places.get(run_id)
            if place is not None:
                return place
            run_id = self._above.get(run_id)
        return NOWHERE


def _place(metadata: Mapping[str, Any], outer: Place) -> Place:
    name = str(metadata.get("langgraph_node", ""))
    triggered_by = tuple(metadata.get("langgraph_path", ()))
    pushed = triggered_by[1:2] if triggered_by[:1] == (_PUSHED,) else ()
    branches = outer.branches + tuple(branch for branch in pushed if isinstance(branch, int))
    if outer.path:
        return Place(outer.role, (*outer.path, name), outer.step, branches)
    return Place(role_of(name), (name,), int(metadata.get("langgraph_step", 0)), branches)


@dataclass
class OpenCall:
    """A call under way.

    above: the one it happens in. begun_by, below: the run of callbacks that it is, and the one that this belongs to.
    threads: that work on it. is_left: its caller no longer waits for it, and a thread goes on.
    """

    call: LogicalCall
    above: OpenCall | None
    begun_by: UUID | None
    below: UUID | None
    context: contextvars.Context
    scope: contextlib.AbstractContextManager[LogicalCall]
    begun_at: float
    span: Attempt | None = None
    threads: int = 0
    is_left: bool = False
    is_over: bool = False


class _Calls(NamedTuple):
    """The calls that the running code belongs to, or has begun.

    innermost: the innermost one that LangChain reported. latest: the latest of one request outside every such call.
    """

    innermost: OpenCall | None = None
    latest: OpenCall | None = None


_NO_CALLS: Final = _Calls()
_calls: ContextVar[_Calls] = ContextVar("docmind_lab_own_calls", default=_NO_CALLS)
# Which calls the calling thread works on, if it is one that a loop has handed work to.
_worker = threading.local()


def innermost_call() -> OpenCall | None:
    """Return the innermost open call that the calling code belongs to; None outside every call."""
    # What ended in another task than it began in is still there.
    call = _calls.get().innermost
    while call is not None and call.is_over:
        call = call.above
    return call


def latest_request() -> OpenCall | None:
    """Return the call of the latest request outside every reported call; None before the first."""
    return _calls.get().latest


def note_request(call: OpenCall) -> None:
    """Note the call of a request outside every reported call, which a retry of it belongs to."""
    _calls.set(_calls.get()._replace(latest=call))


def _enter(call: OpenCall | None) -> None:
    _calls.set(_calls.get()._replace(innermost=call))


class RunCalls:
    """The calls of one run: callbacks and requests begin and end them; they are refused when no budget is left.

    deadline, policy: of the run, once it is known that they travel with it; a call then ends the run (`RunCut`) when
    nothing is left. tree: which node is whose.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.tree = recorder, RunTree()
        self.deadline: Deadline | None = None
        self.policy = PropagationPolicy()
        self._open: dict[UUID, OpenCall] = {}

    def refuse_if_spent(self, kind: CallKind, place: Place) -> None:
        """Return if there is budget left for a call. Raises: RunCut after recording the refusal."""
        deadline = self.deadline
        if deadline is not None and deadline.remaining() <= self.policy.floor_s:
            self.recorder.refuse(kind, place.role, place.position)
            raise RunCut(deadline.refused(place.role, "graph"))

    def begin(
        self, kind: CallKind, place: Place, *, begun_by: UUID | None = None, below: UUID | None = None
    ) -> OpenCall:
        """Begin a call and return it, without making it the innermost one."""
        # In a context of its own, where its scope can be left again from any thread or task.
        context = contextvars.copy_context()
        scope = self.recorder.call(kind, place.role, place.position, cap_from_deadline=self.deadline is not None)
        call = context.run(scope.__enter__)
        above = innermost_call()
        call.parent_call_id = "" if above is None else above.call.call_id
        opened = OpenCall(call, above, begun_by, below, context, scope, self.recorder.clock.now())
        self._note_thread_work(opened)
        return opened

    def end(self, opened: OpenCall, outcome: AttemptOutcome, error: BaseException | None = None) -> None:
        """End the call; a second time changes nothing."""
        if opened.is_over:
            return
        opened.is_over = True
        if opened.begun_by is not None:
            self._open.pop(opened.begun_by, None)
        if opened.span is None and opened.call.attempts == 0:
            self._span(opened)
        if opened.span is not None:
            opened.span.end(outcome, error)
        opened.context.run(opened.scope.__exit__, None, None, None)

    def _span(self, opened: OpenCall) -> None:
        deadline = self.deadline
        opened.call.attempts += 1
        opened.span = Attempt(
            opened.call, 1, opened.begun_at, deadline=deadline, capped=deadline is not None, acquired_at=opened.begun_at
        )
        self.recorder.attempt_started(opened.span)

    def cut(self, error: BaseException | None = None) -> None:
        """End the innermost calls as timed out: LangChain reports no end by an error that is not an `Exception`."""
        opened = innermost_call()
        while opened is not None:
            if opened.span is not None or opened.call.kind != "tool":
                self.end(opened, "timeout", error)
            opened = opened.above

    @contextlib.contextmanager
    def in_a_thread(self, opened: OpenCall | None) -> Iterator[None]:
        """Mark the block as work on a call in a thread that cannot be cancelled, and on calls that begin in it.

        A call that was left is over when its threads are done.
        """
        worked_on: list[OpenCall] = []
        _worker.calls = worked_on
        if opened is not None:
            self._note_thread_work(opened)
        try:
            yield
        finally:
            _worker.calls = None
            for call in worked_on:
                call.threads -= 1
                if call.is_left and not call.threads:
                    self.end(call, "ok")

    @staticmethod
    def _note_thread_work(opened: OpenCall) -> None:
        calls = getattr(_worker, "calls", None)
        if calls is not None:
            opened.threads += 1
            calls.append(opened)

    # ---- calls that LangChain reports

    def started(self, kind: CallKind, run_id: UUID, above: UUID | None) -> None:
        """Begin a call that LangChain reported, as the innermost one. Raises: RunCut if no budget is left."""
        place = self.tree.place_of(above)
        self.tree.note_start(run_id, above, None, None)
        self.refuse_if_spent(kind, place)
        opened = self.begin(kind, place, begun_by=run_id, below=above)
        if kind == "tool":
            self._span(opened)
        self._open[run_id] = opened
        _enter(opened)

    def ended(self, run_id: UUID, error: BaseException | None = None) -> OpenCall | None:
        """End a call that LangChain reported, with an error or without; return the call if it is known."""
        opened = self._open.get(run_id)
        if opened is not None:
            self.end(opened, _outcome(error), error)
            if _calls.get().innermost is opened:
                _enter(opened.above)
        return opened

    def ended_above(self, run_id: UUID, error: BaseException) -> None:
        """End the calls under a run that failed, except those that a thread still works on."""
        for opened in [opened for opened in list(self._open.values()) if opened.below == run_id]:
            opened.is_left = opened.threads > 0
            if not opened.is_left:
                self.end(opened, _outcome(error), error)


def _outcome(error: BaseException | None) -> AttemptOutcome:
    if error is None:
        return "ok"
    if isinstance(error, RunCut | TimeoutError):
        return "timeout"
    return "cancelled" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "error"


# ---- what LangChain reports


class GraphCallbacks(RunCallbacks):
    """Callback handler that records nodes, and begins and ends the run's calls in the thread or task making them.

    One handler for both: LangChain asks each about every run, and a model looks each over before a call. What it raises
    is a RunCut: LangChain logs an `Exception` of a callback and goes on.
    """

    ignore_llm = False
    ignore_chat_model = False
    ignore_retriever = False
    ignore_agent = False

    def __init__(self, calls: RunCalls) -> None:
        super().__init__(calls.recorder)
        self.calls = calls

    def on_chain_start(self, serialized: Any, inputs: Any, **details: Any) -> None:
        """Note the start of a node, or of any other runnable that has children."""
        super().on_chain_start(serialized, inputs, **details)
        self.calls.tree.note_start(
            details["run_id"], details.get("parent_run_id"), details.get("tags"), details.get("metadata")
        )

    def on_chain_error(self, error: BaseException, **details: Any) -> None:
        """Note the error, and end the calls under it: LangChain reports no end of a cancelled tool."""
        super().on_chain_error(error, **details)
        self.calls.ended_above(details["run_id"], error)

    def on_llm_start(self, serialized: Any, prompts: Any, **details: Any) -> None:
        """Begin the call of a model."""
        self._begin_call("llm", details)

    on_chat_model_start = on_llm_start  # type: ignore[assignment]

    def on_tool_start(self, serialized: Any, input_str: Any, **details: Any) -> None:
        """Begin the call of a tool, and note its name."""
        place = self.calls.tree.place_of(details.get("parent_run_id"))
        self._begin_call("tool", details)
        self.calls.recorder.event("tool_started", place.role, tool=str((serialized or {}).get("name") or ""))

    def on_retriever_start(self, serialized: Any, query: Any, **details: Any) -> None:
        """Begin the call of a retriever."""
        self._begin_call("retrieval", details)

    def _begin_call(self, kind: CallKind, details: Mapping[str, Any]) -> None:
        self.calls.started(kind, details["run_id"], details.get("parent_run_id"))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """End the call of a model, and note its tokens if it counts them."""
        opened = self.calls.ended(run_id)
        usage = _usage(response)
        if opened is not None and usage is not None:
            with call_scope(opened.call):
                self.calls.recorder.note_tokens(usage["input_tokens"], usage["output_tokens"])

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """End the call of a tool or a retriever."""
        self.calls.ended(run_id)

    on_retriever_end = on_tool_end  # type: ignore[assignment]

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """End a call that failed."""
        self.calls.ended(run_id, error)

    on_tool_error = on_retriever_error = on_llm_error


def _usage(response: LLMResult) -> Any:
    messages = (getattr(item, "message", None) for row in response.generations for item in row)
    counted = (getattr(message, "usage_metadata", None) for message in messages)
    return next((usage for usage in counted if usage), None)
