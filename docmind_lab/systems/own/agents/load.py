"""Turn a function, or an object of a framework, into an `Agent`, and questions to it into inputs of its graph.

"What is yield?"                                             a question
{"question": "What is yield?", "depth": 2}                   with a keyword of the agent's function
{"input": "What is yield?", "gold": ["generator"], "id": "yield"}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.own.agents.agent import Agent
from docmind_lab.systems.own.agents.frameworks import FRAMEWORKS

_OF_THE_LAB = ("gold", "id")
_QUESTIONS = ("question", "input")
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def load_agent(value: Any, reference: str = "") -> Agent:
    """Return the agent that an object is: of a known framework, or a function of a question.

    reference: "module:attribute", where it was found; empty for a live object.

    Raises: ConfigurationError for what is no agent; the message says what it is.
    """
    name = f"agent {reference!r}" if reference else "agent"
    if isinstance(value, Pregel | StateGraph):
        raise ConfigurationError(f"{name} is a LangGraph graph; name it as one: dl.graph(graph) (--graph)")
    agent = _of_framework(value, reference) or _of_function(value, reference)
    if agent is not None:
        return agent
    what = f"class ({value.__name__})" if inspect.isclass(value) else type(value).__name__
    raise ConfigurationError(
        f"{name} is a {what}, not a function of a question, nor an agent of OpenAI Agents SDK or "
        "pydantic-ai; write def agent(question), which calls it"
    )


def _of_framework(value: Any, reference: str) -> Agent | None:
    for base in type(value).__mro__:
        adapter = FRAMEWORKS.get(f"{base.__module__}.{base.__qualname__}")
        if adapter is None:
            continue
        try:
            return adapter(value, reference)
        except ImportError:
            # A user's own package may have the name of a framework's.
            continue
    return None


def _of_function(value: Any, reference: str) -> Agent | None:
    if not callable(value) or inspect.isclass(value):
        return None
    parameters = _parameters(value)
    takes_question = any(one.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL) for one in parameters.values())
    if not takes_question:
        return None
    # A function, a bound method, or an object with __call__.
    is_async = inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(getattr(value, "__call__", None))  # noqa: B004
    name = reference or str(getattr(value, "__name__", "") or type(value).__name__)
    return Agent(name, value, is_async, takes_stop="should_stop" in parameters)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


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
    parameters = _parameters(agent.call)
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
