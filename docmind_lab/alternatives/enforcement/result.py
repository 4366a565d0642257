"""The result of one enforced call: how it ended, the graph's state, what the deadline cut, and what there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, Literal, TypeVar, get_args

from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from docmind_lab.alternatives.enforcement.repaired_threads import (
    Repair,
    has_checkpointer,
    is_conversation,
    mended_state,
    repair_steps,
)
from docmind_lab.core.errors import DeadlineExceeded
from docmind_lab.core.limits import LimitCut
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.sync_async import Steps, afinish, finish
from docmind_lab.core.text import count_of
from docmind_lab.core.time_policies import WrapUpDeed, WrapUpNote

EnforcedOutcome = Literal["answered", "partial", "timed_out", "interrupted", "failed"]

StateT = TypeVar("StateT")


@dataclass(frozen=True)
class WrappedUp(ShownAsCode):
    """What the policy `wrap_up` did in one call.

    Args:
        at_s: Seconds from the start of the call to the first thing that was done.
        line: The first line that a model was sent; empty if none was.
        requests_told: How many requests to a model were changed.
        requests_untold: The hosts of requests to a model that could not be changed: no JSON, of no known dialect,
            signed with their body.
        tools_refused: The tools that did not begin.
        tools_cut: The tools whose request ended where the reserve began.
    """

    at_s: float
    line: str = ""
    requests_told: int = 0
    requests_untold: tuple[str, ...] = ()
    tools_refused: tuple[str, ...] = ()
    tools_cut: tuple[str, ...] = ()

    @classmethod
    def of(cls, notes: Sequence[WrapUpNote], limit_s: float) -> WrappedUp | None:
        """Return what notes say of a call that had so many seconds; None if nothing was done."""
        if not notes:
            return None
        of = {what: tuple(note.of for note in notes if note.what == what) for what in get_args(WrapUpDeed)}
        line = next((note.line for note in notes if note.line), "")
        return cls(limit_s - notes[0].left_s, line, len(of["told"]), of["untold"], of["refused"], of["cut"])


@dataclass(frozen=True)
class StreamedText:
    """What a model had said when its call was cut.

    Args:
        node: The node that asked; of a node inside another, "outer/inner".
        text: The answer so far, without reasoning and tool calls.
        is_cut: Whether more would have come.
    """

    node: str
    text: str
    is_cut: bool = True


@dataclass(frozen=True)
class ToolReturn:
    """What a tool returned in this call.

    Args:
        name: Of the tool.
        result: What it returned; of a tool message, the content.
        artifact: What a tool message has beside its content for the program alone.
        message: The tool message; None for a tool that was not called by a model, or that returned a command.
    """

    name: str
    result: Any
    artifact: Any = None
    message: ToolMessage | None = None

    @classmethod
    def of(cls, name: str, output: Any) -> ToolReturn:
        """Return what a tool of this name has returned, from its output as callbacks have it."""
        if isinstance(output, ToolMessage):
            return cls(name, output.content, output.artifact, output)
        return cls(name, output)


@dataclass(frozen=True, repr=False)
class Partial(ShownAsCode):
    """What a call has brought, whole or cut, in one shape for every graph.

    Args:
        messages: Of the key "messages", or of a state that is a list of messages.
        values: The other keys of the state; a state that is no mapping is under "__root__".
        texts: Of calls that were cut while their answer streamed, each by the node that made it.
        tools: What tools returned, in the order in which they did, also in nodes that were cut.
    """

    messages: tuple[BaseMessage, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    texts: tuple[StreamedText, ...] = ()
    tools: tuple[ToolReturn, ...] = ()

    def __repr__(self) -> str:
        # Without what users, documents and models say.
        counts = {"message": self.messages, "key": self.values, "cut text": self.texts, "result": self.tools}
        return f"Partial: {', '.join(count_of(len(what), name) for name, what in counts.items())}"

    @classmethod
    def of(cls, state: Any, texts: tuple[StreamedText, ...], tools: tuple[ToolReturn, ...]) -> Partial:
        """Return the parts of a graph's state, with what is in no state.

        Args:
            state: The state.
            texts: Of answers that were cut.
            tools: What tools returned.
        """
        keys = state if isinstance(state, Mapping) else {} if state is None else {_ROOT: state}
        said = next((name for name in ("messages", _ROOT) if is_conversation(keys.get(name))), None)
        values = {name: value for name, value in keys.items() if name != said}
        return cls(tuple(keys[said]) if said else (), values, texts, tools)


# LangGraph's name for a state that has no keys.
_ROOT = "__root__"


class CallThread:
    """The graph and the configuration of a call; a result that is copied or sent to another process has none."""

    def __init__(self, graph: Any, config: RunnableConfig) -> None:
        self.graph, self.config = graph, config

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


@dataclass(frozen=True, repr=False)
class Result(ShownAsCode, Generic[StateT]):
    """How one call of an enforced graph ended.

    Args:
        outcome: answered (the graph ran to its end), partial (it was cut, and some nodes had finished), timed_out (it
            was cut before any node had finished), interrupted (it waits for a person, as the graph would), failed (the
            graph raised an error; only a stream's result says so, since calls raise it).
        state: The graph's own state, whole; after a cut, with the writes of all nodes that had finished.
        interrupts: What an interrupted graph waits for.
        stop_reason: Why the run stopped short: "deadline", "step_timeout", "cancelled" and so on; empty for an end.
        cut_at: The nodes that were at work when the run was cut.
        overrun_s: Seconds after the deadline at which the caller had this result; 0 if it was in time.
        error: The exception by which the run was cut or failed; None where there was none.
        still_running: The nodes whose threads still ran when the caller had this result. No cancellation ends a thread.
        limit_s: The seconds that the call was given.
        elapsed_s: The seconds that it took.
        requests_cut: How many requests the deadline, or the caller, cut or refused. Those that end because their node's
            task is cancelled, as under C and F, are not among them.
        remaining_at_start_s: The seconds that were left when it began; fewer than `limit_s` under an earlier deadline.
        calls_cut: The calls that limits of their own have cut, each with the limit, the node, the host and its seconds;
            under F the nodes. Those that were tried again are among them.
        wrapped_up: What was done to wrap the run up, and when; None if it did not come to that.
        partial: What there is, in one shape for every graph: also the texts of answers that were cut half-way, and what
            tools returned in nodes that were cut.
        thread: The graph and the thread of the call, for `repair`.
        alternative: The alternative that enforced it, by its name in the lab's tables.
        alternative_options: Its options that are not the default, as a JSON object.
    """

    outcome: EnforcedOutcome
    state: StateT
    interrupts: tuple[Any, ...] = ()
    stop_reason: str = ""
    cut_at: tuple[str, ...] = ()
    overrun_s: float = 0.0
    error: BaseException | None = field(default=None, compare=False)
    still_running: tuple[str, ...] = ()
    limit_s: float = 0.0
    elapsed_s: float = 0.0
    requests_cut: int = 0
    remaining_at_start_s: float = 0.0
    calls_cut: tuple[LimitCut, ...] = ()
    wrapped_up: WrappedUp | None = None
    partial: Partial = field(default_factory=Partial, compare=False)
    thread: CallThread | None = field(default=None, compare=False)
    alternative: str = ""
    alternative_options: str = "{}"

    def __repr__(self) -> str:
        # Without the state, which holds what users and documents say.
        parts = [f"Result: {self.outcome} in {self.elapsed_s:.3g} s of {self.limit_s:g} s"]
        if self.stop_reason:
            parts.append(f"stopped by {self.stop_reason}" + (f" in {', '.join(self.cut_at)}" if self.cut_at else ""))
        if self.overrun_s:
            parts.append(f"{self.overrun_s:.3g} s late")
        for limit, count in Counter(cut.limit.replace("_", " ") for cut in self.calls_cut).items():
            parts.append(f"{count} {'call' if count == 1 else 'calls'} cut by the limit {limit}")
        if self.wrapped_up is not None:
            parts.append(f"wrapped up from {self.wrapped_up.at_s:.3g} s on")
        if self.still_running:
            parts.append(f"threads of {', '.join(self.still_running)} still running")
        return ", ".join(parts)

    @property
    def was_cut(self) -> bool:
        """Whether the deadline or the caller ended the run before the graph did."""
        return self.outcome in ("partial", "timed_out")

    def repair(self, *, drops_interrupts: bool = False) -> Repair:
        """Mend the thread of this call so that a provider takes it, as `repair` does, or the state of a graph without.

        Results of tools that had returned are recorded, also those of a node that was cut. Arguments and errors are
        those of `repair`.

        Args:
            drops_interrupts: Whether a thread that waits for a person is mended too.
        """
        return finish(self._repair_steps(drops_interrupts))

    async def arepair(self, *, drops_interrupts: bool = False) -> Repair:
        """`repair`, for a checkpointer that is awaited.

        Args:
            drops_interrupts: Whether a thread that waits for a person is mended too.
        """
        return await afinish(self._repair_steps(drops_interrupts))

    def _repair_steps(self, drops_interrupts: bool) -> Steps[Repair]:
        returned = [each.message for each in self.partial.tools if each.message is not None]
        thread = self.thread
        if thread is None or not has_checkpointer(thread.graph):
            changed, cut = mended_state(self.state, returned)
            return Repair({**dict(self.state), **changed} if isinstance(self.state, Mapping) else self.state, cut)
        return (yield from repair_steps(thread.graph, thread.config, returned, drops_interrupts=drops_interrupts))


class CallCut(DeadlineExceeded):
    """The deadline ended a call of an enforced graph.

    Args:
        result: What there is of the call.
    """

    def __init__(self, result: Result[Any]) -> None:
        where = f" in {', '.join(result.cut_at)}" if result.cut_at else ""
        super().__init__(
            f"the deadline cut the graph{where}, {result.elapsed_s:.3f} s into a limit of {result.limit_s:.3f} s",
            role=", ".join(result.cut_at) or "graph",
            limit_s=result.limit_s,
            elapsed_s=result.elapsed_s,
            source="graph",
        )
        self.result = result

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"
