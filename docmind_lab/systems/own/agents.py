"""Agents that are no LangGraph graph: a function of a question, whose result is read as text.

It is the only node of a LangGraph graph, `agent`, so that every part of the lab can run it. Questions to it are:

    "What is yield?"                                             a question
    {"question": "What is yield?", "depth": 2}                   with a keyword of the agent's function
    {"input": "What is yield?", "gold": ["generator"], "id": "yield"}
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Required, TypedDict

from langchain_core.messages import AIMessage
from langgraph.channels import UntrackedValue
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel import Pregel
from langgraph.runtime import get_runtime

from docmind_lab.alternatives import Alternative, Native, StopFlag
from docmind_lab.alternatives.bound import copy_with
from docmind_lab.core.errors import ConfigurationError, RunCut

NODE = "agent"
"""The name of the graph's only node: the role of an agent in the tables, and in faults (`hang:agent`)."""

_OF_THE_LAB = ("gold", "id")
_QUESTIONS = ("question", "input")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TEXT_ATTRIBUTES = ("text", "content", "output", "final_output", "answer", "response", "raw")
# A result in a result in a message: no framework nests them deeper.
_DEPTH = 4
_NO_STOP = "the agent takes no argument should_stop, a function that returns True when it is time to stop; add it"
_NO_TIMEOUT = "a function has no timeout of its own for a whole run"


@dataclass(frozen=True)
class Agent:
    """An agent: a function of a question.

    name: level of `workload` in the tables. call: (question, **keywords) → the result. is_async: whether `call` returns
    a coroutine or an async generator. takes_stop: whether `call` takes `should_stop`, a function that returns True when
    it is time to stop.
    """

    name: str
    call: Callable[..., Any]
    is_async: bool
    takes_stop: bool = False


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
    """The state: the input, then the answer, as a text and as a message; in no checkpoint that it was told to stop."""

    answer: str
    messages: list[Any]
    docmind_lab_stopped: Annotated[bool, UntrackedValue]


STOPPED: Final = "docmind_lab_stopped"
"""Key of the state of a function that was told to stop, and has looked; `doorway.py` reads it."""


class NoAnswer(Exception):
    """Raised when an agent returns no text."""


class ShouldStop:
    """What an agent's function is given as `should_stop`. was_told: whether a call has returned True."""

    def __init__(self) -> None:
        self._control, self.was_told = get_runtime().control, False

    def __call__(self) -> bool:
        """Return whether it is time to stop."""
        self.was_told = self.was_told or (self._control is not None and self._control.drain_requested)
        return self.was_told


class AgentGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled graph of one node that runs an agent."""

    # In a slot: LangGraph hands everything in a graph's __dict__ to the constructor of its copy.
    __slots__ = ("agent",)

    agent: Agent


def agent_graph(agent: Agent) -> AgentGraph:
    """Return the graph of one node that runs the agent. An async agent has an async node and no other."""

    def sync_node(state: Answered) -> dict[str, Any]:
        should_stop = ShouldStop()
        result = _begin(agent, state, should_stop)
        if inspect.iscoroutine(result) or isinstance(result, AsyncIterator):
            if inspect.iscoroutine(result):
                result.close()
            kind = type(result).__name__
            raise RunCut(ConfigurationError(f"agent {agent.name!r} returns a {kind}; write it as async def"))
        return _answer(result, should_stop)

    async def async_node(state: Answered) -> dict[str, Any]:
        should_stop = ShouldStop()
        result = _begin(agent, state, should_stop)
        if inspect.isawaitable(result):
            result = await result
        return _answer([part async for part in result] if isinstance(result, AsyncIterator) else result, should_stop)

    builder = StateGraph(Answered, input_schema=Asked)
    builder.add_node(NODE, async_node if agent.is_async else sync_node)
    builder.add_edge(START, NODE)
    builder.add_edge(NODE, END)
    graph: AgentGraph = copy_with(AgentGraph, builder.compile(name=agent.name))
    graph.agent = agent
    return graph


def _begin(agent: Agent, state: Answered, should_stop: ShouldStop) -> Any:
    """Call the agent with the state's question; return its result, or a coroutine of it."""
    options = dict(state.get("keywords") or {})
    if agent.takes_stop:
        options["should_stop"] = should_stop
    return agent.call(state["question"], **options)


def _answer(result: Any, should_stop: ShouldStop) -> dict[str, Any]:
    text = text_of(result)
    if not text.strip():
        raise NoAnswer("the agent returned no text")
    stopped = {STOPPED: True} if should_stop.was_told else {}
    return {"answer": text, "messages": [AIMessage(text)], **stopped}


# ---- an agent by what it is, and questions to it


def load_agent(value: Any, reference: str = "") -> Agent:
    """Return the agent that a function of a question is.

    reference: "module:attribute", where it was found; empty for a live object.

    Raises: ConfigurationError for what is no agent; the message says what it is.
    """
    name = f"agent {reference!r}" if reference else "agent"
    if isinstance(value, Pregel | StateGraph):
        raise ConfigurationError(f"{name} is a LangGraph graph; name it as one: dl.graph(graph) (--graph)")
    parameters = parameters_of(value) if callable(value) and not inspect.isclass(value) else {}
    if any(one.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL) for one in parameters.values()):
        # A function, a bound method, or an object with __call__.
        forms = (value, getattr(value, "__call__", None))  # noqa: B004
        is_async = any(inspect.iscoroutinefunction(form) or inspect.isasyncgenfunction(form) for form in forms)
        own_name = reference or str(getattr(value, "__name__", "") or type(value).__name__)
        return Agent(own_name, value, is_async, takes_stop="should_stop" in parameters)
    raise ConfigurationError(
        f"{name} is a {kind_of(value)}, not a function of a question; write def agent(question), which calls it"
    )


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function by name; none for one that does not tell."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def kind_of(value: Any) -> str:
    """Return what an object is, as errors call it."""
    return f"class ({value.__name__})" if inspect.isclass(value) else type(value).__name__


def as_question(agent: Agent, item: Any, where: str) -> dict[str, Any]:
    """Return an item as a wrapped input of the agent's graph: its question, its keywords, gold and id.

    Raises: ConfigurationError, beginning with `where`, for an item without a question, or with keywords that the agent
    does not take.
    """
    of_the_lab: dict[str, Any] = {}
    keywords: dict[str, Any] = {}
    question = item
    while isinstance(question, Mapping):
        of_the_lab |= {name: question[name] for name in _OF_THE_LAB if name in question}
        named = next((name for name in _QUESTIONS if name in question), None)
        if named is None:
            known = ", ".join(map(str, question)) or "none"
            raise ConfigurationError(f"{where}: a question has the key question or input; this has {known}")
        keywords |= {name: value for name, value in question.items() if name not in (*_OF_THE_LAB, named)}
        question = question[named]
    if not isinstance(question, str):
        raise ConfigurationError(f"{where}: a question is a text, not a {type(question).__name__}")
    if not question.strip():
        raise ConfigurationError(f"{where}: the question is empty; write one")
    _check_keywords(agent, keywords, where)
    return {"input": {"question": question, "keywords": keywords}, **of_the_lab}


def _check_keywords(agent: Agent, keywords: Mapping[str, Any], where: str) -> None:
    """Return if the agent takes a question with these keywords. Raises: ConfigurationError naming one that it lacks."""
    parameters = parameters_of(agent.call)
    if not parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    names = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_POSITIONAL]
    for name in keywords:
        if name not in names[1:]:
            raise ConfigurationError(f"{where}: the agent takes no argument {name!r}; it takes {', '.join(names)}")
    needed = [name for name in names[1:] if parameters[name].default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in keywords and name != "should_stop"]
    if missing:
        raise ConfigurationError(f"{where}: the agent needs the argument {missing[0]!r}; add the key to the input")


def refusal_of(agent: Agent, alternative: Alternative, *, by_name: bool = False) -> str:
    """Return why an agent cannot have an alternative, with the remedy if there is one; empty if it can."""
    if isinstance(alternative, StopFlag) or getattr(alternative, "drain_on_timeout", False):
        return "" if agent.takes_stop else _NO_STOP
    return _NO_TIMEOUT if isinstance(alternative, Native) else ""
