"""`enforce`: a compiled LangGraph graph under a measured alternative, in production.

    agent = enforce(graph, decision_timeout_s=20, alternative="E")
    result = await agent.ainvoke(inputs, config)          # on the caller's event loop
    async for chunk in (stream := agent.astream(inputs, config, stream_mode="updates")):
        ...
    stream.result

The alternative is the class that the lab measures. The graph, its store, checkpointer and threads stay the user's.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from textwrap import wrap
from types import MappingProxyType
from typing import Any, Generic, Literal, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command, StateSnapshot
from langgraph.typing import ContextT, InputT, OutputT, StateT

from docmind_lab.alternatives.alternative_texts import and_policies, parse_alternatives, require_no_roles
from docmind_lab.alternatives.base import Alternative, Outcome, RunLog, options_json
from docmind_lab.alternatives.enforcement.call import EnforcedCall, Shape, SilentLog, node_at_work, outcome_of_exit
from docmind_lab.alternatives.enforcement.check import Unheld, find_unheld
from docmind_lab.alternatives.enforcement.enforced_streams import AsyncStream, SyncStream, until_cancelled
from docmind_lab.alternatives.enforcement.hooks import install_lazily
from docmind_lab.alternatives.enforcement.result import CallCut, CallThread, Result
from docmind_lab.alternatives.held_tools import hold_tools
from docmind_lab.core.alternative_catalogue import CATALOGUE, label_of
from docmind_lab.core.deadlines import DEFAULT_POLICY, Deadline
from docmind_lab.core.errors import CallerLeft, ConfigurationError
from docmind_lab.core.holds import Hold, current_hold, hold_scope
from docmind_lab.core.limits import Limits
from docmind_lab.core.numbers import require_seconds
from docmind_lab.core.shown import COLUMNS, ShownAsCode
from docmind_lab.core.time_policies import WrapUp

OnDeadline = Literal["partial", "raise"]
TIMEOUT_KEY = "decision_timeout_s"
"""Key of `config["configurable"]` that gives one call a timeout of its own, in seconds."""

_LOG = SilentLog()


@dataclasses.dataclass(frozen=True, repr=False)
class EnforcedAgent(ShownAsCode, Generic[StateT, ContextT, InputT, OutputT]):
    """A graph whose every call is held to a deadline; made by `enforce`.

    Args:
        graph: The graph, unchanged.
        decision_timeout_s: Seconds of each call.
        alternative: What enforces the deadline.
        on_deadline: "partial" or "raise", as `enforce` has it.
        deadline_key: Key of the graph's input that takes the deadline.
        on_result: Called with the result of each call.
        cuts_background: Whether the deadline cuts what an answered run left behind.
    """

    graph: CompiledStateGraph[StateT, ContextT, InputT, OutputT]
    decision_timeout_s: float
    alternative: Alternative
    on_deadline: OnDeadline = "partial"
    deadline_key: str = ""
    on_result: Callable[[Result[Any]], None] | None = None
    cuts_background: bool = False

    def __repr__(self) -> str:
        label = " ".join(label_of(self.alternative.name, options_json(self.alternative)).split())
        under = f"{self.graph.get_name()} under {label}, {self.decision_timeout_s:g} s a call"
        on_deadline = "returns what there is" if self.on_deadline == "partial" else "raises"
        entry = CATALOGUE.get(self.alternative.name)
        is_control = entry is not None and entry.is_control
        ends = "and enforces nothing" if is_control else f"{on_deadline} at the deadline"
        return "\n".join(wrap(f"EnforcedAgent: {under}, {ends}", COLUMNS))

    # ---- one answer

    async def ainvoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: ContextT | None = None,
        deadline: Deadline | float | None = None,
        cancel: Awaitable[Any] | None = None,
        **options: Any,
    ) -> Result[OutputT]:
        """Run the graph on the calling event loop, and return its result by the deadline.

        Args:
            input: The graph's input; a Command or None to go on from a checkpoint.
            config: The graph's configuration.
            context: The graph's runtime context.
            deadline: The deadline of this call, or its seconds; the agent's own when left out. The nearest one applies.
            cancel: The call is cut when this is done, such as `disconnected(request)`.
            options: Of the graph's `ainvoke`.

        Returns:
            The result, also of a call that was cut.

        Raises:
            CallCut: The call was cut, and the agent raises on its deadline.
            Exception: What the graph raised by itself.
        """
        options = {"output_keys": self.graph.output_channels, **options}
        call = self.call_for(config, context=context, deadline=deadline, options=options)
        try:
            outcome = await self._outcome_of_async(call, input, config, cancel)
        except BaseException as left:
            self._finish(call, left)
            raise
        return self._end(call, outcome)

    def invoke(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: ContextT | None = None,
        deadline: Deadline | float | None = None,
        **options: Any,
    ) -> Result[OutputT]:
        """Run the graph for a caller without an event loop. The parameters are those of `ainvoke`, but for `cancel`.

        Under an alternative that is async, the graph runs on the process's shared loop, in a thread of its own.
        """
        options = {"output_keys": self.graph.output_channels, **options}
        call = self.call_for(config, context=context, deadline=deadline, options=options)
        try:
            outcome = self.outcome_of(call, input, config)
        except BaseException as left:
            self._finish(call, left)
            raise
        return self._end(call, outcome)

    async def abatch(
        self,
        inputs: Sequence[InputT],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        **options: Any,
    ) -> list[Result[OutputT]]:
        """Run `ainvoke` for each input side by side, each with a deadline of its own.

        Args:
            inputs: The graph's inputs.
            config: Its configuration, one for all or one for each.
            options: Of `ainvoke`.
        """
        configs = _config_for_each(config, len(inputs))
        return list(await asyncio.gather(*map(lambda each, one: self.ainvoke(each, one, **options), inputs, configs)))

    def batch(
        self,
        inputs: Sequence[InputT],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        **options: Any,
    ) -> list[Result[OutputT]]:
        """Run `invoke` for each input side by side in threads. The parameters are those of `abatch`."""
        if not inputs:
            return []
        configs = _config_for_each(config, len(inputs))
        with ThreadPoolExecutor(len(inputs), thread_name_prefix="docmind-batch") as pool:
            contexts = [contextvars.copy_context() for _ in inputs]
            running = [
                pool.submit(context.run, functools.partial(self.invoke, each, one, **options))
                for context, each, one in zip(contexts, inputs, configs, strict=True)
            ]
            return [future.result() for future in running]

    # ---- streams

    def astream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: ContextT | None = None,
        stream_mode: Any = None,
        subgraphs: bool = False,
        version: Literal["v1", "v2"] = "v1",
        deadline: Deadline | float | None = None,
        cancel: Awaitable[Any] | None = None,
        **options: Any,
    ) -> AsyncStream[EnforcedCall, Result[OutputT]]:
        """Return the graph's chunks as an async iterator, which ends at the deadline; its `result` is there then.

        Closing the iterator, or cancelling the task that reads it, cuts the run. Other parameters are those of
        `ainvoke`.

        Args:
            stream_mode: Of the graph's `astream`, one or several; its default when left out.
            subgraphs: Whether chunks of graphs inside come too.
            version: Of the graph's chunks.
        """
        shape = Shape.of(stream_mode, self.graph.stream_mode, subgraphs, version)

        def begin() -> EnforcedCall:
            return self.call_for(config, context=context, deadline=deadline, options=options, shape=shape)

        async def run(call: EnforcedCall, sink: Callable[[Any], Awaitable[None]]) -> Outcome:
            call.async_sink = sink
            outcome = await self._outcome_of_async(call, input, config, cancel)
            if (last := _last_chunk(call, outcome)) is not None:
                await sink(last)
            return outcome

        return AsyncStream(begin, run, self._finish, self._raises)

    def stream(
        self,
        input: InputT | Command[Any] | None,
        config: RunnableConfig | None = None,
        *,
        context: ContextT | None = None,
        stream_mode: Any = None,
        subgraphs: bool = False,
        version: Literal["v1", "v2"] = "v1",
        deadline: Deadline | float | None = None,
        **options: Any,
    ) -> SyncStream[EnforcedCall, Result[OutputT]]:
        """Return the graph's chunks as an iterator. The graph runs in a thread of its own.

        The parameters are those of `astream`, but for `cancel`.
        """
        shape = Shape.of(stream_mode, self.graph.stream_mode, subgraphs, version)
        call = self.call_for(config, context=context, deadline=deadline, options=options, shape=shape)

        def run(call: EnforcedCall, sink: Callable[[Any], None]) -> Outcome:
            call.sink = sink
            outcome = self.outcome_of(call, input, config)
            if (last := _last_chunk(call, outcome)) is not None:
                sink(last)
            return outcome

        return SyncStream(call, run, self._finish, self._raises, call.hold)

    # ---- as a graph

    def as_graph(self) -> CompiledStateGraph[StateT, ContextT, InputT, OutputT]:
        """Return a graph that is enforced however it is called: for langgraph.json, or inside another graph.

        Its methods return what a graph's do: `invoke` returns the state, whole or partial.
        """
        # Function-level: that module makes agents.
        from docmind_lab.alternatives.enforcement.enforced_graph import enforced_graph  # noqa: PLC0415

        return cast("CompiledStateGraph[StateT, ContextT, InputT, OutputT]", enforced_graph(self))

    def get_state(self, config: RunnableConfig, **options: Any) -> StateSnapshot:
        """Return the thread's state from the graph's checkpointer.

        Args:
            config: Names the thread.
            options: Of the graph's `get_state`.
        """
        return self.graph.get_state(config, **options)

    async def aget_state(self, config: RunnableConfig, **options: Any) -> StateSnapshot:
        """Return the thread's state from the graph's checkpointer.

        Args:
            config: Names the thread.
            options: Of the graph's `aget_state`.
        """
        return await self.graph.aget_state(config, **options)

    def with_deadline(self, decision_timeout_s: float) -> EnforcedAgent[StateT, ContextT, InputT, OutputT]:
        """Return the agent with another timeout.

        Args:
            decision_timeout_s: Seconds above 0.
        """
        return dataclasses.replace(self, decision_timeout_s=require_seconds("decision_timeout_s", decision_timeout_s))

    def check(self) -> tuple[Unheld, ...]:
        """Return what no deadline reaches in this graph: clients that are not held, and blocking code in threads."""
        return find_unheld(self.graph, self.alternative)

    # ---- inside

    def outcome_of(self, call: EnforcedCall, inputs: Any, config: RunnableConfig | None, log: RunLog = _LOG) -> Outcome:
        """Return the alternative's own outcome of a call that `call_for` has made.

        Args:
            call: The call.
            inputs: The graph's input.
            config: The graph's configuration.
            log: Takes note of what the alternative does.
        """
        with hold_scope(call.hold), hold_tools():
            return self.alternative.run(self._runnable(call, config), inputs, call.deadline, log)

    async def _outcome_of_async(
        self, call: EnforcedCall, inputs: Any, config: RunnableConfig | None, cancel: Awaitable[Any] | None
    ) -> Outcome:
        with hold_scope(call.hold), hold_tools():
            running = self.alternative.run_async(self._runnable(call, config), inputs, call.deadline, _LOG)
            return await until_cancelled(running, call.hold, cancel)

    def call_for(
        self,
        config: RunnableConfig | None,
        *,
        context: Any = None,
        deadline: Deadline | float | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
        shape: Shape | None = None,
    ) -> EnforcedCall:
        """Return a call that has not begun; its deadline counts from now.

        Args:
            config: The graph's configuration.
            context: The graph's runtime context.
            deadline: The deadline, or its seconds; the agent's own when left out.
            options: Of the graph's `stream`.
            shape: How the caller wants chunks; None for a caller that wants the result only.
        """
        install_lazily()
        policy = getattr(self.alternative, "policy", DEFAULT_POLICY)
        nearest = self._nearest(config, deadline)
        limit = nearest if self.alternative.propagates else None
        return EnforcedCall(
            alternative=self.alternative,
            deadline=nearest,
            hold=Hold(limit, policy, label="graph", name_work=node_at_work, answers=[], returned=[]),
            channels=self.graph.channels,
            shape=shape,
            context=context,
            options={name: value for name, value in options.items() if name != "control"},
            state_key=self.deadline_key,
            control=options.get("control"),
            thread=CallThread(self.graph, merge_configs(self.graph.config, config)),
        )

    def _nearest(self, config: RunnableConfig | None, deadline: Deadline | float | None) -> Deadline:
        """Return the nearest of the call's deadline, or else the agent's, and the one in force around it."""
        if deadline is None:
            own = (config or {}).get("configurable", {}).get(TIMEOUT_KEY)
            deadline = self.decision_timeout_s if own is None else require_seconds(TIMEOUT_KEY, own)
        inner = deadline if isinstance(deadline, Deadline) else Deadline.after(deadline)
        around = current_hold()
        outer = None if around is None else around.ends_by
        return outer if outer is not None and outer.at_s < inner.at_s else inner

    def _runnable(self, call: EnforcedCall, config: RunnableConfig | None) -> Any:
        runnable = call.around(self.graph)
        return runnable if config is None else runnable.with_config(config)

    def _finish(self, call: EnforcedCall, end: Outcome | BaseException) -> Result[Any]:
        """Return the result of a call, and tell `on_result`; called once for every call that began."""
        result = call.result(end if isinstance(end, Outcome) else outcome_of_exit(end))
        self.let_go(call, result.outcome)
        if self.on_result is not None:
            self.on_result(result)
        return result

    def let_go(self, call: EnforcedCall, outcome: str) -> None:
        """Let what a call has left behind go on if it has ended by itself, unless that is to be cut too.

        Args:
            call: The call.
            outcome: How it ended.
        """
        if outcome in ("answered", "interrupted") and not self.cuts_background:
            call.hold.release()

    def _raises(self, result: Result[Any]) -> None:
        """Raise what a caller of the graph would get in place of this result, if anything."""
        if result.outcome == "failed" and result.error is not None:
            raise result.error
        if self.on_deadline == "raise" and result.was_cut and result.stop_reason != CallerLeft.stop_reason:
            raise CallCut(result) from result.error

    def _end(self, call: EnforcedCall, outcome: Outcome) -> Result[Any]:
        result = self._finish(call, outcome)
        self._raises(result)
        return result


def _last_chunk(call: EnforcedCall, outcome: Outcome) -> Any:
    """Return the chunk that shows a caller of values the state of a run that was cut; None if it has seen that."""
    return None if outcome.outcome in ("answered", "interrupted") else call.unsent_state()


def _config_for_each(
    config: RunnableConfig | Sequence[RunnableConfig] | None, count: int
) -> Sequence[RunnableConfig | None]:
    if isinstance(config, Sequence):
        if len(config) != count:
            raise ConfigurationError(f"config: {len(config)} for {count} inputs; give one for each, or one for all")
        return config
    return [config] * count


def enforce(
    graph: CompiledStateGraph[StateT, ContextT, InputT, OutputT],
    decision_timeout_s: float = 20.0,
    alternative: str | Alternative = "E",
    *,
    on_deadline: OnDeadline = "partial",
    deadline_key: str = "",
    on_result: Callable[[Result[Any]], None] | None = None,
    cuts_background: bool = False,
    limits: Limits | None = None,
    wrap_up: WrapUp | None = None,
) -> EnforcedAgent[StateT, ContextT, InputT, OutputT]:
    """Return the graph with every call held to a deadline, by an alternative that the lab has measured.

    Args:
        graph: A compiled graph; it is not changed.
        decision_timeout_s: Seconds of each call, unless the call says another.
        alternative: A letter, a name or a variant as `compare` takes it ("E", "C", "B:drain"), or an alternative.
        on_deadline: "partial" returns what there is when a call is cut; "raise" raises `CallCut`, which carries it.
        deadline_key: A key of the graph's input that takes the deadline, an instant of `time.monotonic()`.
        on_result: Called with the result of each call, once, in the thread or task of its caller: of calls that were
            answered, cut or failed, and of those whose caller left (a cancelled task, a stream closed half-way).
        cuts_background: Whether the deadline cuts what a run left behind when it was answered, such as a write that
            nobody waits for. By default that goes on: the deadline was the answer's.
        limits: Of single calls, beside the deadline: until the first token, between tokens, and in total. What a limit
            cuts ends with the client's own timeout, so a client that tries again does. Under F they are LangGraph's own
            limits of a node.
        wrap_up: Keeps the last seconds for the answer: requests to a model then say that time is short, and tools are
            not offered any more and do not begin. `Result.wrapped_up` says what was done.

    Raises:
        ConfigurationError: A value that cannot be used, or a policy under an alternative whose calls know of none.
    """
    value: object = graph
    if not isinstance(value, Pregel):
        remedy = "call .compile()" if hasattr(value, "compile") else "give a compiled LangGraph graph"
        raise ConfigurationError(f"graph is a {type(value).__name__}, not a compiled graph; {remedy}")
    if on_deadline not in ("partial", "raise"):
        raise ConfigurationError(f"on_deadline must be 'partial' or 'raise', not {on_deadline!r}")
    chosen = parse_alternatives([alternative])
    if len(chosen) != 1 or not hasattr(chosen[0], "run"):
        raise ConfigurationError(f"alternative must name one, not {alternative!r}; try 'E'")
    for name, given, such in (("limits", limits, Limits(total_s=60)), ("wrap_up", wrap_up, WrapUp(8))):
        if not isinstance(given, type(such) | None):
            raise ConfigurationError(f"{name} is {given!r}, not a {type(such).__name__}; try {such!r}")
    if limits == Limits():
        raise ConfigurationError("limits has no limit; name one, such as dl.Limits(first_token_s=8, idle_s=5)")
    enforcing = and_policies(chosen[0], limits=limits, wrap_up=wrap_up)
    require_no_roles([enforcing])
    install_lazily()
    seconds = require_seconds("decision_timeout_s", decision_timeout_s)
    if wrap_up is not None and wrap_up.reserve_s >= seconds:
        raise ConfigurationError(
            f"wrap_up: a reserve of {wrap_up.reserve_s:g} s is no less than the {seconds:g} s of a call, so no "
            "tool would ever run; give a smaller reserve_s or a longer decision_timeout_s"
        )
    return EnforcedAgent(graph, seconds, enforcing, on_deadline, deadline_key, on_result, cuts_background)
