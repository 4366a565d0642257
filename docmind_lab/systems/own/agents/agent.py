"""An agent as the lab runs it: one function from a question to a result, which is read as text.

It is the only node of a LangGraph graph, `agent`, so that every part of the lab can run it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Required, TypedDict

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime

from docmind_lab.alternatives.base import Runnable
from docmind_lab.alternatives.bound import copy_with
from docmind_lab.core.errors import ConfigurationError, RunCut

NODE = "agent"
"""The name of the graph's only node: the role of an agent in the tables, and in faults (`hang:agent`)."""

_TEXT_ATTRIBUTES = ("text", "content", "output", "final_output", "answer", "response", "raw")
# A result in a result in a message: no framework nests them deeper.
_DEPTH = 4


class NativeTimeoutReached(Exception):
    """Raised by an adapter when the framework's own timeout has ended the run."""


@dataclass(frozen=True)
class NativeTimeout:
    """The timeout that a framework itself offers for a whole run.

    title: how the framework's users write it. call: (seconds, question, **keywords) → the result; sync or async as the
    agent is. It raises `NativeTimeoutReached` when the timeout has ended the run.
    """

    title: str
    call: Callable[..., Any]


@dataclass(frozen=True)
class Agent:
    """An agent: a function of a question, of any framework or of none.

    name: level of `workload` in the tables. call: (question, **keywords) → the result. is_async: whether `call` and the
    native timeout return a coroutine. takes_stop: whether `call` takes `should_stop`, a function that returns True when
    it is time to stop. framework: how its users call it. native: its own timeout; None without one.
    """

    name: str
    call: Callable[..., Any]
    is_async: bool
    takes_stop: bool = False
    framework: str = "a function"
    native: NativeTimeout | None = None


def text_of(result: Any, depth: int = _DEPTH) -> str:
    """Return the text of an agent's result.

    That is the result itself, or the first of its `text`, `content`, `output`, `final_output`, `answer`, `response`
    and `raw` that is there, read in the same way; otherwise `str(result)`. None has no text.
    """
    if isinstance(result, str) or result is None:
        return result or ""
    if depth:
        for name in _TEXT_ATTRIBUTES:
            value = result.get(name) if isinstance(result, Mapping) else getattr(result, name, None)
            if value is not None and not callable(value):
                return text_of(value, depth - 1)
        if isinstance(result, Iterable) and not isinstance(result, Mapping | bytes):
            return "".join(text_of(part, depth - 1) for part in result)
    return str(result)


class Asked(TypedDict, total=False):
    """The graph's input: the question, and keywords for the agent's function."""

    question: Required[str]
    keywords: dict[str, Any]


class Answered(Asked, total=False):
    """The graph's state: the input, then the answer, as a text and as a message."""

    answer: str
    messages: list[Any]


class NoAnswer(Exception):
    """Raised when an agent returns no text."""


@dataclass
class AgentRun:
    """One run of an agent. limit_s: seconds for the framework's own timeout; None leaves it off."""

    limit_s: float | None = None
    has_stopped: bool = False


_RUN_KEY: Final = "__docmind_agent_run"
"""Key of the run in the graph's configuration: with underscores, LangGraph copies it into no checkpoint."""


def with_run(runnable: Runnable, run: AgentRun) -> Runnable:
    """Return the agent's graph with this run in its configuration."""
    return runnable.with_config({"configurable": {_RUN_KEY: run}})


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph of one node that runs an agent."""

    # In a slot: LangGraph hands everything in a graph's __dict__ to the constructor of its copy.
    __slots__ = ("agent",)

    agent: Agent


def agent_graph(agent: Agent) -> AgentGraph:
    """Return the graph of one node that runs the agent. An async agent has an async node and no other."""

    def sync_node(state: Answered, config: RunnableConfig) -> dict[str, Any]:
        result = _begin(agent, state, config)
        if inspect.iscoroutine(result):
            result.close()
            raise RunCut(ConfigurationError(f"agent {agent.name!r} returns a coroutine; write it as async def"))
        return _answer(result)

    async def async_node(state: Answered, config: RunnableConfig) -> dict[str, Any]:
        return _answer(await _begin(agent, state, config))

    builder = StateGraph(Answered, input_schema=Asked)
    builder.add_node(NODE, async_node if agent.is_async else sync_node)
    builder.add_edge(START, NODE)
    builder.add_edge(NODE, END)
    graph: AgentGraph = copy_with(AgentGraph, builder.compile(name=agent.name))
    graph.agent = agent
    return graph


def _begin(agent: Agent, state: Answered, config: RunnableConfig) -> Any:
    """Call the agent with the state's question; return its result, or a coroutine of it."""
    run: AgentRun = config.get("configurable", {}).get(_RUN_KEY) or AgentRun()
    control = get_runtime().control
    options = dict(state.get("keywords") or {})

    def should_stop() -> bool:
        has_stopped = control is not None and control.drain_requested
        run.has_stopped = run.has_stopped or has_stopped
        return has_stopped

    if agent.takes_stop:
        options["should_stop"] = should_stop
    if run.limit_s is None:
        return agent.call(state["question"], **options)
    assert agent.native is not None, "alternative F is refused for an agent without a timeout of its own"
    return agent.native.call(run.limit_s, state["question"], **options)


def _answer(result: Any) -> dict[str, Any]:
    text = text_of(result)
    if not text.strip():
        raise NoAnswer("the agent returned no text")
    return {"answer": text, "messages": [AIMessage(text)]}
