"""F: LangGraph's own controls and nothing else."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

from langgraph.errors import NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send, TimeoutPolicy

from docmind_lab.alternatives.base import (
    Inputs,
    Outcome,
    RunLog,
    Runnable,
    RunProgress,
    SyncOrAsync,
    run_to_outcome,
)
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.alternatives.propagation import Propagation
from docmind_lab.core.deadlines import Deadline, PropagationPolicy
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import current_hold
from docmind_lab.core.limits import LimitCut, Limits
from docmind_lab.core.sync_async import afinish, on_a_loop

_NODE = "system"


class _EmptyState(TypedDict):
    """The empty state of the outer graph; the system's state stays inside the system."""


@dataclass(frozen=True)
class Native(Propagation):
    """Dispatches the graph as one node with `Send(timeout=remaining)`; LangGraph cancels it at the deadline.

    A timeout surfaces as `NodeTimeoutError` (per step: `TimeoutError`). A timed-out node is cancelled and not awaited:
    its async calls are cut, their connections close a little later; sync nodes and tools run on in their threads.
    Limits of calls are limits of nodes here, LangGraph's own: `idle_s` and `total_s`, for nodes that have none.

    Args:
        per_step: Set the graph's `step_timeout` to the decision timeout instead. It reads like a limit of the run, and
            limits each step anew; a common mistake, kept to be measured.
        propagate: Let the graph know of the deadline.
        policy: How a propagated deadline is applied to each call.
    """

    per_step: bool = False
    propagate: bool = False
    policy: PropagationPolicy = field(default_factory=PropagationPolicy)

    name: ClassVar[str] = "native"
    node_mode: ClassVar[SyncOrAsync] = "async"
    limits_nodes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        limits = None if self.propagate else self.policy.policies.limits
        roles = () if limits is None else (limits, *limits.by_role.values())
        if limits is not None and any((one.first_token_s, one.tool_s) != (None, None) for one in roles):
            raise ConfigurationError(
                f"F+{limits.text}: LangGraph limits a node's silence and its whole time, and knows no first token and "
                "no tool; give idle and total alone, or F:propagate, whose calls are held at the network"
            )

    def run(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph on the shared loop under LangGraph's limit."""
        return shared_loop().run(self.run_async(runnable, inputs, deadline, recorder))

    async def run_async(self, runnable: Runnable, inputs: Inputs, deadline: Deadline, recorder: RunLog) -> Outcome:
        """Run the graph in the caller's task under LangGraph's limit."""
        recorder.share_thread()
        progress = RunProgress.of(runnable)
        graph = runnable.copy({"step_timeout": deadline.limit_s}) if self.per_step else runnable
        if self.policy.policies.limits is not None and not self.propagate:
            graph = _limit_nodes(graph, self.policy.policies.limits)

        async def stream() -> None:
            await afinish(self._stream(graph, inputs, deadline, progress))

        async def dispatch_as_node() -> None:
            await _outer_graph().ainvoke({}, context=_Dispatch(stream, deadline))

        def stop_reason_of(error: Exception) -> str:
            if isinstance(error, NodeTimeoutError):
                _note_limit_of_node(error)
                return "node_timeout"
            return "step_timeout" if isinstance(error, TimeoutError) and deadline.passed() else ""

        work = on_a_loop(stream if self.per_step else dispatch_as_node)
        return await afinish(run_to_outcome(progress, work, stop_reason_of))


def _limit_nodes(graph: Runnable, limits: Limits) -> Runnable:
    """Return a copy of the graph in which each node that has no timeout of its own has LangGraph's, by these limits."""

    def limit_node(name: str, node: Any) -> Any:
        if node.timeout is not None or name.startswith("__"):
            return node
        seconds = limits.of_call(name, is_model=True)
        return node.copy({"timeout": TimeoutPolicy(run_timeout=seconds.total_s, idle_timeout=seconds.idle_s)})

    return graph.copy({"nodes": {name: limit_node(name, node) for name, node in graph.nodes.items()}})


def _note_limit_of_node(error: NodeTimeoutError) -> None:
    """Note for the call under way which limit of a node has ended it; the run's own is no limit of a node."""
    hold = current_hold()
    if hold is not None and error.node != _NODE:
        hold.note("limit_cuts", LimitCut("idle" if error.kind == "idle" else "total", error.node, "", error.elapsed))


@dataclass(frozen=True)
class _Dispatch:
    """One run of a graph as a node of the outer graph, which is the outer graph's runtime context.

    context: what the graph runs in: outside of the outer graph's configuration. Inside it the graph would take itself
    for a part of that one, and put its checkpoints elsewhere.
    """

    stream: Callable[[], Coroutine[Any, Any, None]]
    deadline: Deadline
    context: contextvars.Context = field(default_factory=contextvars.copy_context)


async def _system(state: _EmptyState, runtime: Runtime[_Dispatch]) -> dict[str, Any]:
    await asyncio.create_task(runtime.context.stream(), context=runtime.context.context)
    return {}


async def _dispatch(state: _EmptyState, runtime: Runtime[_Dispatch]) -> Send:
    return Send(_NODE, {}, timeout=max(0.001, runtime.context.deadline.remaining()))


@functools.cache
def _outer_graph() -> CompiledStateGraph[_EmptyState, _Dispatch, _EmptyState, _EmptyState]:
    """Return the graph whose one node is given its LangGraph timeout, the time left, when it is sent off.

    Compiled once: to compile it takes longer than to run it.
    """
    graph = StateGraph(_EmptyState, context_schema=_Dispatch)
    graph.add_node(_NODE, _system)
    graph.add_conditional_edges(START, _dispatch, [_NODE])
    graph.add_edge(_NODE, END)
    return graph.compile()
