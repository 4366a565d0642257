"""Turn a function, or an object of a framework, into an `Agent`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.workloads.agents.agent import Agent

_ADAPTERS = "docmind_lab.workloads.agents.frameworks"

# Class, or a base of it → its adapter. By name, so that no framework is imported that is not loaded already.
FRAMEWORKS: Mapping[str, str] = MappingProxyType(
    {
        "agents.agent.Agent": "openai_agents",
        "pydantic_ai.agent.abstract.AbstractAgent": "pydantic_ai",
        "workflows.workflow.Workflow": "llamaindex",
        "crewai.crew.Crew": "crewai",
        "ag2.agent.Agent": "ag2",
        "autogen.agentchat.conversable_agent.ConversableAgent": "autogen",
        "smolagents.agents.MultiStepAgent": "smolagents",
        "google.adk.agents.base_agent.BaseAgent": "google_adk",
        "google.adk.runners.Runner": "google_adk",
    }
)

_KNOWN = "OpenAI Agents SDK, pydantic-ai, LlamaIndex, CrewAI, AG2, smolagents, Google ADK"
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def load_agent(found: Any, reference: str = "") -> Agent:
    """Return the agent that an object is: of a known framework, a function of a question, or what a function makes.

    reference: "module:attribute", where it was found; empty for a live object.

    Raises: ConfigurationError for what is no agent; the message says what it is.
    """
    shown = f"agent {reference!r}" if reference else "agent"
    if isinstance(found, Pregel | StateGraph):
        raise ConfigurationError(f"{shown} is a LangGraph graph; name it as the graph: graph=... (--graph)")
    agent = _of_framework(found, reference) or _of_function(found, reference)
    if agent is not None:
        return agent
    if callable(found) and not inspect.isclass(found):
        made = _made_by(found, shown)
        agent = _of_framework(made, reference) or _of_function(made, reference)
        if agent is not None:
            return agent
        found = made
    what = f"class ({found.__name__})" if inspect.isclass(found) else type(found).__name__
    raise ConfigurationError(
        f"{shown} is a {what}, not a function of a question, nor an agent of {_KNOWN}; write def agent(question)"
    )


def _of_framework(found: Any, reference: str) -> Agent | None:
    for base in type(found).__mro__:
        adapter = FRAMEWORKS.get(f"{base.__module__}.{base.__qualname__}")
        if adapter is None:
            continue
        try:
            made: Agent = importlib.import_module(f"{_ADAPTERS}.{adapter}").adapt(found, reference)
        except ImportError:
            # A user's own package may have the name of a framework's.
            continue
        return made
    return None


def _of_function(found: Any, reference: str) -> Agent | None:
    if not callable(found) or inspect.isclass(found):
        return None
    parameters = _parameters(found)
    takes_question = any(one.kind in (*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL) for one in parameters.values())
    if not takes_question:
        return None
    # A function, a bound method, or an object with __call__.
    is_async = inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(getattr(found, "__call__", None))  # noqa: B004
    name = reference or str(getattr(found, "__name__", "") or type(found).__name__)
    return Agent(name, found, is_async, takes_stop="should_stop" in parameters)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _made_by(factory: Callable[[], Any], shown: str) -> Any:
    try:
        return factory()
    except DocmindLabError:
        raise
    except Exception as error:
        first = (str(error).strip().splitlines() or [""])[0]
        raise ConfigurationError(f"{shown} could not be made: {type(error).__name__}: {first}") from error


def check_keywords(agent: Agent, keywords: Mapping[str, Any], where: str) -> None:
    """Return if the agent takes a question with these keywords. Raises: ConfigurationError naming one that it lacks."""
    parameters = _parameters(agent.call)
    if not parameters or any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values()):
        return
    taken = [name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_POSITIONAL]
    for name in keywords:
        if name not in taken[1:]:
            raise ConfigurationError(f"{where}: the agent takes no argument {name!r}; it takes {', '.join(taken)}")
    needed = [name for name in taken[1:] if parameters[name].default is inspect.Parameter.empty]
    missing = [name for name in needed if name not in keywords and name != "should_stop"]
    if missing:
        raise ConfigurationError(f"{where}: the agent needs the argument {missing[0]!r}; add the key to the input")
