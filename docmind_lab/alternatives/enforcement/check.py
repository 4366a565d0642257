"""Finds, before anything runs, what no deadline reaches in a graph: clients that are not held, and code in threads.

It reads the objects that a graph's nodes can reach. `docmind-lab doctor --graph` measures the same on runs, and finds
what only a run shows.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START

from docmind_lab.alternatives.base import Alternative
from docmind_lab.alternatives.bound import without_wrappers

# Top-level package of a client → why its requests are not held.
_NOT_HELD = {
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
    "http": "http.client is not held; use httpx or requests",
    "urllib": "urllib.request is not held; use httpx or requests",
    "pycurl": "libcurl has connections of its own; set TIMEOUT_MS from remaining_s()",
    "subprocess": "a subprocess has no requests to hold; give it a timeout of remaining_s()",
}
_MCP_SESSION = ("mcp.client.session", "ClientSession")
_MCP_WRAPPED = ("docmind_lab.alternatives.enforcement.wire.mcp", "DeadlineStream")
_MCP_WHY = (
    "the session sends for all calls, in tasks of its own: its server hears of no deadline, and a cut may end it; "
    "wrap its transport with with_deadlines"
)
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


def unheld(graph: Any, alternative: Alternative) -> tuple[Unheld, ...]:
    """Return what the deadline does not reach in a graph under an alternative, node by node."""
    reports: dict[tuple[str, str], Unheld] = {}
    for name, node in graph.nodes.items():
        if name == START:
            continue
        for item in _objects(node.bound):
            package = _kind_of(item)[0].partition(".")[0]
            if package in _NOT_HELD:
                reports.setdefault((name, package), Unheld(name, package, _NOT_HELD[package]))
            if _is_untold_session(item):
                reports.setdefault((name, "mcp"), Unheld(name, "open MCP session", _MCP_WHY))
        if alternative.node_mode == "async" and _is_blocking(node.bound):
            what = "its requests are held, and its own code" if alternative.propagates else "its requests and its code"
            why = f"{what} runs on in a thread, which nothing cancels; make the node async"
            reports.setdefault((name, "thread"), Unheld(name, "blocking code", why))
        if not alternative.propagates and alternative.node_mode == "sync":
            why = f"{alternative.name} caps no request; choose A or E"
            reports.setdefault((name, "requests"), Unheld(name, "every request", why))
    return tuple(reports.values())


def _is_blocking(bound: Any) -> bool:
    """Whether a node is a blocking function that an event loop must hand to a thread."""
    plain = without_wrappers(bound)
    function, coroutine = getattr(plain, "func", None), getattr(plain, "afunc", None)
    if isinstance(coroutine, functools.partial):
        # LangGraph makes one of a blocking function, which hands it to a thread.
        coroutine = None
    return function is not None and coroutine is None and not inspect.iscoroutinefunction(function)


def _kind_of(item: Any) -> tuple[str, str]:
    """Return the module and the name of the class of an object, of a class itself, or of a module."""
    if isinstance(item, types.ModuleType):
        return item.__name__, ""
    kind = item if isinstance(item, type) else type(item)
    return kind.__module__, kind.__name__


def _is_untold_session(item: Any) -> bool:
    """Whether an object is an open session of MCP whose messages do not carry the deadline."""
    if isinstance(item, type) or _kind_of(item) != _MCP_SESSION:
        return False
    return all(_kind_of(inner) != _MCP_WRAPPED for inner in _objects(item))


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
        module = inspect.unwrap(item).__globals__
        yield from (module[name] for name in item.__code__.co_names if name in module)
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
