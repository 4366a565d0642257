"""What every alternative shares: its interface, its outcome, and how the end of a run becomes an outcome."""

from __future__ import annotations

import abc
import contextlib
import copy
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.channels.base import BaseChannel
from langgraph.errors import GraphBubbleUp, GraphDrained, GraphRecursionError
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StreamMode

from docmind_lab.alternatives.bound import state_reader
from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import BudgetError, RunCut
from docmind_lab.core.levels import SPENDING_REASONS, RunOutcome
from docmind_lab.core.sync_async import Operation, Steps, afinish, finish
from docmind_lab.core.time_policies import TimePolicies
from docmind_lab.network.recorder import current_recorder

INTERRUPT = "__interrupt__"
"""Key of a LangGraph state under which a graph that waits for a person puts its interrupts."""

SyncOrAsync = Literal["sync", "async"]
Runnable = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True)
class Outcome:
    """What the caller of a run gets.

    Args:
        outcome: answered (a finished answer), partial (documents, a draft, or what the nodes of a user's graph have
            written), timed_out (nothing), failed (an error), interrupted (it waits for a person).
        answer: The answer, or the draft there was.
        documents: Mappings with id, content, metadata, score.
        stop_reason: Why the run stopped short, one of `STOP_REASONS`; empty for an ordinary end.
        error_type: Name of the exception of a failed run.
        error: The exception itself, or the one that cut the run; None for one that ended by itself.
        state: The latest state of the graph that the caller saw; empty under an alternative that shows it none.
    """

    outcome: RunOutcome
    answer: str = ""
    documents: tuple[Mapping[str, Any], ...] = ()
    stop_reason: str = ""
    error_type: str = ""
    error: BaseException | None = field(default=None, repr=False, compare=False)
    state: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


Inputs = Mapping[str, Any] | None
"""Input of a graph; None goes on from the thread's latest checkpoint."""


class RunLog(Protocol):
    """Takes note of what an alternative does, as a `Recorder` does."""

    def event(self, name: str, role: str = "", *, at: float | None = None, **detail: Any) -> None:
        """Note that something happened."""

    def share_thread(self) -> None:
        """Note that the calling thread belongs to no run."""

    def work(self, label: str) -> contextlib.AbstractContextManager[None]:
        """Note that the run is at work during a block."""


class Alternative(Protocol):
    """A way to enforce a deadline: a frozen dataclass with one method, interchangeable with the others.

    An alternative that has the option `propagate` lets the graph know of its deadline, and caps its calls by `policy`.

    node_mode: which methods of nodes, models and tools it calls, sync or async.
    """

    name: ClassVar[str]
    node_mode: ClassVar[SyncOrAsync]

    @property
    def propagates(self) -> bool:
        """Whether the deadline travels with the run: an option of the instance, see `propagation.py`."""
        ...

    @property
    def client_retries(self) -> bool:
        """Whether retries are left to the model's client."""
        ...

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run a graph under a deadline, and return the answer or what there is; a timeout raises nothing."""
        ...

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """`run` for a caller on an event loop, which the graph then runs on too.

        Raises: CancelledError when the caller's task is cancelled.
        """
        ...


@dataclass(frozen=True)
class AroundAlternative:
    """The base class of what carries an alternative out, and has whatever else that has."""

    alternative: Alternative

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.alternative, name)


def options_json(alternative: Any) -> str:
    """Return the options of an alternative, and of its policy, that are not at their default, as a JSON object."""
    return json.dumps(_changed_options(alternative), sort_keys=True, default=str)


def _changed_options(record: Any) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for option in dataclasses.fields(record):
        value = getattr(record, option.name)
        if isinstance(value, TimePolicies):
            changed |= {option.name: value.text} if value.text else {}
        elif dataclasses.is_dataclass(value):
            changed |= _changed_options(value)
        elif value != option.default:
            changed[option.name] = value
    return changed


class FreeState(dict[str, Any]):
    """The state of a graph that was not made for the lab, with `messages` and `documents` where it has them.

    Such a graph counts as answered when it has run to its end.
    """


STREAM_MODES: list[StreamMode] = ["values", "updates"]
"""What every alternative streams: the state after each step, and each node's writes as soon as it has finished.

A step with several nodes shows its state when all of them have finished; "values" alone would lose what some had
written when the step is cut. Neither mode turns a model call into a streaming one, as "messages" does.
"""


class RunProgress:
    """What a run has streamed so far, from which an outcome is made if the run stops early.

    channels: those of the graph by name, whose reducers apply the writes of finished nodes. view: turns a state of the
    graph into the shape that alternatives read.
    """

    def __init__(
        self,
        state: Any = None,
        channels: Mapping[str, Any] | None = None,
        view: Callable[[Any], Any] = lambda state: state,
    ) -> None:
        self._channels, self._view = channels or {}, view
        # By id: each branch of a step that waits for a person has a chunk of its own.
        self._interrupts: dict[str, Any] = {}
        self._is_interrupted = self._has_result = self._has_written = False
        # One attribute, so that a caller that leaves the run behind in another thread reads both parts of one step.
        self._latest: tuple[Any, list[Mapping[str, Any]]] = (state or {}, [])
        self._recorder = current_recorder()

    @classmethod
    def of(cls, runnable: Runnable) -> RunProgress:
        """Return the progress of a run of this graph that has not begun."""
        return cls(None, runnable.channels, state_reader(runnable))

    def add(self, chunk: Any) -> bool:
        """Add a chunk that the graph has streamed; return whether the graph is between two steps then.

        chunk: a pair of its mode, one of `STREAM_MODES`, and its content.
        """
        mode, content = chunk
        # A graph that streams again after a breakpoint was resumed.
        self._is_interrupted = False
        is_state = bool(mode == "values")
        if is_state:
            # The state that comes with an interrupt is that before the step, so the writes of the step are kept.
            keeps_writes = isinstance(content, dict) and INTERRUPT in content
            self._latest = (content, self._latest[1] if keeps_writes else [])
        elif isinstance(content, dict):
            self._add_updates(content)
        self._note_result()
        return is_state

    def _add_updates(self, updates: Mapping[str, Any]) -> None:
        for node, update in updates.items():
            if node == INTERRUPT:
                self._interrupts |= {each.id: each for each in update or ()}
                self._is_interrupted = True
            elif node != "__metadata__":
                writes = [each for each in (update if isinstance(update, list) else [update]) if each]
                self._latest[1].extend([write for write in writes if isinstance(write, Mapping)])
                self._has_written = self._has_written or bool(writes)

    def _note_result(self) -> None:
        """Record when there is first something to return to a caller who leaves, and what it is whenever it changes."""
        recorder = self._recorder
        if recorder is None:
            return
        state = self.state
        recorder.note_result(_draft(state), _documents(state))
        if not self._has_result and self._has_some(state):
            self._has_result = True
            recorder.event("result_available")

    def _has_some(self, state: Mapping[str, Any]) -> bool:
        """Whether there is something to return: documents, text, or what nodes of a user's graph have written."""
        return bool(_documents(state) or _draft(state) or (isinstance(state, FreeState) and self._has_written))

    @property
    def interrupts(self) -> tuple[Any, ...]:
        """What the run waits for: LangGraph's interrupts, in the order in which they came."""
        return tuple(self._interrupts.values())

    @property
    def state(self) -> Mapping[str, Any]:
        """The latest state, with the writes of nodes that have finished in the current step."""
        state, writes = self._latest
        if isinstance(state, Mapping) and writes:
            state = {**state, **self._apply_writes(state, list(writes))}
        if isinstance(state, Mapping) and self._interrupts:
            state = {**state, INTERRUPT: self.interrupts}
        view = self._view(state)
        return view if isinstance(view, Mapping) else {}

    def _apply_writes(self, state: Mapping[str, Any], writes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the values of the channels written to, by the reducers that LangGraph would use."""
        values = {}
        for key in dict.fromkeys(key for write in writes for key in write):
            channel = self._channels.get(key)
            if not isinstance(channel, BaseChannel):
                continue
            try:
                # From a copy: a reducer may change a list in place that the run still uses.
                copied = channel.from_checkpoint(copy.copy(state[key])) if key in state else channel.copy()
                copied.update([write[key] for write in writes if key in write])
                values[key] = copied.get()
            except Exception:  # noqa: BLE001 - a reducer is anybody's code, and would have failed the step too
                continue
        return values

    def final_outcome(self) -> Outcome:
        """Return the outcome of a run that ended by itself or waits for a person at an interrupt."""
        state = self.state
        if self._is_interrupted or state.get(INTERRUPT):
            return Outcome("interrupted", _draft(state), _documents(state), "interrupted", state=state)
        reason = str(state.get("stop_reason", ""))
        if reason:
            return self.early_outcome(reason)
        turn = _messages_since_question(state)
        answer = turn[-1].text if turn and isinstance(turn[-1], AIMessage) and not turn[-1].tool_calls else ""
        if not answer and not isinstance(state, FreeState):
            return self.early_outcome("error", error_type="NoAnswer")
        # Only a supervisor's state counts visits; another graph may well answer without any.
        stop_reason = "no_agent" if "visits" in state and not state["visits"] else ""
        return Outcome("answered", answer, _documents(state), stop_reason, state=state)

    def early_outcome(self, reason: str, error_type: str = "", error: BaseException | None = None) -> Outcome:
        """Return the outcome of a run that stopped early, with what it has: documents, text, state of a user's own."""
        state = self.state
        documents, draft = _documents(state), _draft(state)
        has_some = self._has_some(state)
        # With nothing to show it failed, and was not cut by its deadline, which may have been far.
        if reason == "error" or (reason in SPENDING_REASONS and not has_some):
            return Outcome("failed", draft, documents, reason, error_type, error, state)
        kind: RunOutcome = "partial" if has_some else "timed_out"
        return Outcome(kind, draft, documents, reason, error_type, error, state)


def _messages_since_question(state: Mapping[str, Any]) -> Sequence[AnyMessage]:
    """Return the messages after the last question: a thread may hold the answers to earlier ones."""
    messages = list(state.get("messages", ()))
    places = [position for position, message in enumerate(messages) if isinstance(message, HumanMessage)]
    return messages[places[-1] + 1 :] if places else messages


def _draft(state: Mapping[str, Any]) -> str:
    texts = (m.text for m in reversed(_messages_since_question(state)) if isinstance(m, AIMessage) and not m.tool_calls)
    return next((text for text in texts if text), "")


def _documents(state: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    return tuple(state.get("documents", ()))


TimeOut = Callable[[Exception], str]
"""Returns the stop reason of an exception by which the alternative's own limit surfaces; "" for any other."""


def run_to_outcome(progress: RunProgress, work: Steps[None], time_out: TimeOut = lambda error: "") -> Steps[Outcome]:
    """Do the work, which reports its progress, and return an outcome however the work ends.

    Cancellation and interrupts of the interpreter are not ends of a run and go on. Raises: what a `RunCut` means, when
    that is no end of a run either.
    """
    try:
        yield from work
    except RunCut as cut:
        return _cut(progress, cut)
    except BaseExceptionGroup as group:
        # A task group raises what its tasks raised as one group.
        cut_inside = group.subgroup(RunCut)
        if cut_inside is not None:
            return _cut(progress, _first_cut(cut_inside))
        if not isinstance(group, Exception):
            raise
        return progress.early_outcome(time_out(group) or "error", type(group).__name__, group)
    except BudgetError as error:
        return progress.early_outcome(error.stop_reason, type(error).__name__, error)
    except GraphDrained as error:
        return progress.early_outcome(error.reason, error=error)
    except GraphRecursionError as error:
        return progress.early_outcome("step_limit", type(error).__name__, error)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 - a run ends in a typed outcome, whatever user code raised
        return progress.early_outcome(time_out(error) or "error", type(error).__name__, error)
    return progress.final_outcome()


def _first_cut(group: BaseExceptionGroup[RunCut]) -> RunCut:
    first = group.exceptions[0]
    return _first_cut(first) if isinstance(first, BaseExceptionGroup) else first


def _cut(progress: RunProgress, cut: RunCut) -> Outcome:
    if isinstance(cut.error, BudgetError):
        return progress.early_outcome(cut.error.stop_reason, type(cut.error).__name__, cut.error)
    raise cut.error from cut


class Stepped(abc.ABC):
    """The base class of alternatives that do the same for callers with and without an event loop."""

    @abc.abstractmethod
    def steps(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Steps[Outcome]:
        """Return the steps of a run, from its input to its outcome."""

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in the caller's thread."""
        return finish(self.steps(runnable, inputs, deadline, recorder))

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in the caller's task."""
        return await afinish(self.steps(runnable, inputs, deadline, recorder))


_END: Final = object()


def stream_graph(
    runnable: Runnable,
    inputs: Inputs | Command[Any],
    progress: RunProgress,
    *,
    between_steps: Callable[[], None] = lambda: None,
    **options: Any,
) -> Steps[None]:
    """Stream a graph to its end, and add each chunk to `progress`. options: of the graph's `stream`."""
    chunks: Any = None

    def advance() -> Any:
        nonlocal chunks
        chunks = chunks or runnable.stream(inputs, stream_mode=STREAM_MODES, **options)
        return next(chunks, _END)

    async def advance_async() -> Any:
        nonlocal chunks
        chunks = chunks or runnable.astream(inputs, stream_mode=STREAM_MODES, **options)
        return await anext(chunks, _END)

    chunk = Operation(advance, advance_async)
    while (item := (yield chunk)) is not _END:
        if progress.add(item):
            between_steps()
