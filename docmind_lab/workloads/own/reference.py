"""A user's graph, found by its reference: "my_app:graph", a compiled graph or a factory without arguments."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.core.errors import ConfigurationError, DocmindLabError


def load_graph(reference: str) -> Pregel[Any, Any, Any, Any]:
    """The compiled graph of a reference "module:attribute". The working directory counts as a place of modules.

    Raises: ConfigurationError in one line: for a reference that is none, a module that does not import, an attribute
    that is not there or is no graph, a factory that fails.
    """
    module_name, _, attribute = reference.partition(":")
    if not module_name or not attribute:
        raise ConfigurationError(f"graph {reference!r}: write it as module:attribute, such as my_app:graph")
    found = _imported(reference, module_name)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"graph {reference!r}: module {module_name} has no attribute {attribute}")
        found = getattr(found, name)
    return compiled(found, reference)


def compiled(found: Any, reference: str) -> Pregel[Any, Any, Any, Any]:
    """The compiled graph that an object is or makes. Raises: ConfigurationError as `load_graph` does."""
    if isinstance(found, StateGraph):
        raise ConfigurationError(
            f"graph {reference!r} is a {type(found).__name__} that is not compiled; call .compile()"
        )
    if isinstance(found, Pregel):
        return found
    if not callable(found) or inspect.isclass(found):
        raise ConfigurationError(
            f"graph {reference!r} is a {_kind(found)}, not a compiled LangGraph graph or a function that makes one"
        )
    made = _made(found, reference)
    if isinstance(made, StateGraph):
        raise ConfigurationError(
            f"graph {reference!r} makes a {type(made).__name__} that is not compiled; call .compile()"
        )
    if not isinstance(made, Pregel):
        raise ConfigurationError(f"graph {reference!r} makes a {_kind(made)}, not a compiled LangGraph graph")
    return made


def _imported(reference: str, module: str) -> Any:
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except DocmindLabError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"graph {reference!r}: module {module} does not import: {_in_a_line(error)}"
        ) from error


def _made(factory: Any, reference: str) -> Any:
    needed = [
        name
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if needed:
        raise ConfigurationError(
            f"graph {reference!r} is a function of {', '.join(needed)}; one without arguments is needed"
        )
    try:
        made = factory()
        return shared_loop().run(_awaited(made)) if inspect.isawaitable(made) else made
    except DocmindLabError:
        raise
    except Exception as error:
        raise ConfigurationError(f"graph {reference!r} could not be made: {_in_a_line(error)}") from error


async def _awaited(made: Any) -> Any:
    return await made


def _kind(value: Any) -> str:
    return f"class ({value.__name__})" if inspect.isclass(value) else type(value).__name__


def _in_a_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
