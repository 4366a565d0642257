"""Finds, before anything runs, what no deadline reaches in a graph: clients that are not held, and code in threads.

It reads the objects that a graph's nodes can reach. `docmind-lab doctor --graph` measures the same on runs, and finds
what only a run shows.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
import threading
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from docmind_lab.alternatives.base import Alternative
from docmind_lab.alternatives.bound import without_wrappers

_THREADS = (
    "what its threads ask is held only where they run in the context of the node: contextvars.copy_context().run, or "
    "langchain_core's ContextThreadPoolExecutor"
)
# Package, module or class of a client → why its requests are not held.
_NOT_HELD = {
    "concurrent.futures.thread": _THREADS,
    "threading.Thread": _THREADS,
    "grpc": "gRPC has connections of its own; give each call a timeout of remaining_s()",
    "psycopg": "a database driver has connections of its own; set statement_timeout",
    "psycopg2": "a database driver has connections of its own; set statement_timeout",
    "asyncpg": "a database driver has connections of its own; give each query a timeout of remaining_s()",
    "pymongo": "a database driver has connections of its own; use pymongo.timeout(remaining_s())",
    "motor": "a database driver has connections of its own; use pymongo.timeout(remaining_s())",
    "redis": "a database driver has connections of its own; set socket_timeout",
    "sqlalchemy": "a database driver has connections of its own; set a timeout of statements",
    "sqlite3": "a local database has no requests to hold",
    "websockets": "a websocket has no requests to hold; use it inside asyncio.timeout",
    "http.client": "http.client is not held; use httpx or requests",
    "urllib.request": "urllib.request is not held; use httpx or requests",
    "pycurl": "libcurl has connections of its own; set TIMEOUT_MS from remaining_s()",
    "subprocess": "a subprocess has no requests to hold; give it a timeout of remaining_s()",
    "open MCP session": "the session sends for all calls, in tasks of its own: its server hears of no deadline, and a "
    "cut may end it; wrap its transport with with_deadlines",
}
_MCP_SESSION = ("mcp.client.session", "ClientSession")
_MCP_WITH_DEADLINE = ("docmind_lab.alternatives.enforcement.wire.mcp", "DeadlineStream")
# A graph reaches its model's client within these steps; beyond them lie the insides of libraries.
_MOST_STEPS, _MOST_OBJECTS = 6, 20_000


@dataclass(frozen=True)
class Unheld:
    """Something that the deadline does not reach, with the node that reaches it. why: with the remedy."""

    node: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.node}: {self.what}: {self.why}"


def find_unheld(graph: Any, alternative: Alternative) -> tuple[Unheld, ...]:
    """Return what the deadline does not reach in a graph under an alternative, node by node and each once."""
    nodes = [(name, node.bound) for name, node in graph.nodes.items() if name != START]
    return tuple(dict.fromkeys(item for name, code in nodes for item in _unheld_of_node(name, code, alternative)))


def _unheld_of_node(name: str, code: Any, alternative: Alternative) -> Iterator[Unheld]:
    for client in filter(None, map(_client_of, _objects(code))):
        yield Unheld(name, client, _NOT_HELD[client])
    if alternative.node_mode == "async" and _is_blocking(code):
        what = "its requests are held, and its own code" if alternative.propagates else "it"
        yield Unheld(name, "blocking code", f"{what} runs on in a thread, which nothing cancels; make it async")
    if not alternative.propagates and alternative.node_mode == "sync":
        yield Unheld(name, "every request", f"{alternative.name} caps no request; choose A or E")


def _client_of(item: Any) -> str:
    """Return the entry of `_NOT_HELD` that an object, a class or a module belongs to; empty for none."""
    if _kind_of(item) == _MCP_SESSION and not isinstance(item, type):
        # Its messages carry the deadline if its transport is wrapped.
        return "" if any(_kind_of(inner) == _MCP_WITH_DEADLINE for inner in _objects(item)) else "open MCP session"
    # Libraries have threads of their own: the class is what a node starts one by.
    address = "" if isinstance(item, threading.Thread) else ".".join(filter(None, _kind_of(item)))
    return next((each for each in _NOT_HELD if f"{address}.".startswith(f"{each}.")), "")


def _is_blocking(bound: Any) -> bool:
    """Whether an event loop must hand a node, or a tool or a node inside it, to a thread."""
    plain = without_wrappers(bound)
    if isinstance(plain, Pregel):
        return any(_is_blocking(node.bound) for name, node in plain.nodes.items() if name != START)
    if isinstance(plain, ToolNode):
        return any(map(_is_blocking, plain.tools_by_name.values()))
    function = getattr(plain, "func", None)
    coroutine = getattr(plain, "afunc", None) or getattr(plain, "coroutine", None)
    if inspect.iscoroutinefunction(function):
        coroutine = function
    # LangGraph makes a partial of a blocking function, which hands it to a thread; so do these in a coroutine.
    if coroutine is None or isinstance(coroutine, functools.partial):
        return function is not None
    names = getattr(getattr(coroutine, "__code__", None), "co_names", ())
    return "to_thread" in names or "run_in_executor" in names


def _kind_of(item: Any) -> tuple[str, str]:
    """Return the module and the name of the class of an object, of a class itself, or of a module."""
    if isinstance(item, types.ModuleType):
        return item.__name__, ""
    kind = item if isinstance(item, type) else type(item)
    return kind.__module__, kind.__name__


def _objects(start: Any) -> Iterator[Any]:
    """Yield the objects that code can reach by its closure, its globals and attributes, but for what modules have."""
    ids: set[int] = set()
    waiting = [(start, 0)]
    while waiting and len(ids) < _MOST_OBJECTS:
        item, steps = waiting.pop()
        if id(item) in ids or steps > _MOST_STEPS or isinstance(item, str | bytes | int | float | type(None)):
            continue
        ids.add(id(item))
        yield item
        if isinstance(item, types.ModuleType):
            continue
        waiting.extend((inner, steps + 1) for inner in _inside(item))


def _inside(item: Any) -> Iterator[Any]:
    if isinstance(item, types.MethodType):
        yield from (item.__func__, item.__self__)
    elif isinstance(item, types.FunctionType):
        yield from _named(item.__code__, inspect.unwrap(item).__globals__)
        for cell in item.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue  # a cell that is not filled yet
    elif isinstance(item, functools.partial):
        yield from (item.func, *item.args, *item.keywords.values())
    elif isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, list | tuple | set | frozenset):
        yield from item
    elif not isinstance(item, type):
        yield from list(getattr(item, "__dict__", {}).values())


def _named(code: types.CodeType, variables: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what code names: globals, modules that it imports, and modules and classes that they have."""
    item: Any = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            item = variables.get(step.argval)
        elif step.opname == "IMPORT_NAME":
            item = sys.modules.get(step.argval)
        else:
            item = getattr(item, str(step.argval), None) if isinstance(item, types.ModuleType) else None
            item = item if isinstance(item, types.ModuleType | type) else None
        if isinstance(step.argval, types.CodeType):
            yield from _named(step.argval, variables)
        yield item
