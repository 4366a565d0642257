"""The locks that a graph's code can reach, and which of them are held."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

from langgraph.pregel import Pregel

from docmind_lab.alternatives.bound import without_wrappers
from docmind_lab.systems.own.own_kind import tools_of
from docmind_lab.systems.own.references import AnyGraph

_DEPTH = 2


def held_locks(graph: AnyGraph) -> dict[str, Any]:
    """Return the locks that are held, by the name under which the graph's code has them.

    Those are looked at that its functions and tools name: globals of their modules, variables around them, attributes
    of their objects.
    """
    locks: dict[str, Any] = {}
    for function in _functions_of(graph):
        for name, value in _names_in(function):
            _collect(name, value, locks, _DEPTH)
    return locks


def _functions_of(graph: AnyGraph) -> Iterator[Any]:
    for node in graph.nodes.values():
        inner = without_wrappers(node.bound)
        if isinstance(inner, Pregel):
            yield from _functions_of(inner)
            continue
        for part in (inner, *getattr(inner, "steps", ())):
            yield from (each for name in ("func", "afunc") if (each := getattr(part, name, None)) is not None)
    for tool in tools_of(graph).values():
        yield from (each for name in ("func", "coroutine") if (each := getattr(tool, name, None)) is not None)


def _names_in(function: Any) -> Iterator[tuple[str, Any]]:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    if inspect.ismethod(function):
        yield "self", function.__self__
        function = function.__func__
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(function, "__code__", None)
    if code is None:
        return
    yield from ((name, function.__globals__[name]) for name in _globals_of(code) if name in function.__globals__)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents


def _globals_of(code: Any) -> set[str]:
    inner = (constant for constant in code.co_consts if inspect.iscode(constant))
    return set(code.co_names).union(*map(_globals_of, inner))


def _collect(name: str, value: Any, locks: dict[str, Any], depth: int) -> None:
    if _is_held(value):
        locks[name] = value
        return
    if depth == 0 or inspect.ismodule(value) or inspect.isclass(value):
        return
    if inspect.isfunction(value):
        for inner, each in _names_in(value):
            _collect(inner, each, locks, depth - 1)
        return
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and type(value).__module__ not in ("builtins", "threading"):
        for inner, each in list(attributes.items()):
            _collect(f"{name}.{inner}", each, locks, depth - 1)


def _is_held(value: Any) -> bool:
    if inspect.isclass(value) or not hasattr(value, "release") or not hasattr(value, "acquire"):
        return False
    with contextlib.suppress(Exception):
        if callable(getattr(value, "locked", None)):
            return bool(value.locked())
        return repr(value).startswith("<locked")
    return False
