"""Refuses well-known calls that have no virtual time, such as starting a process, by name.

Whatever connects or looks up a name in Python, `_socket` included, is refused by an audit hook of the interpreter.
Calls that are not listed here are detected by the watch of the run once they wait: `real_waits`.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import os
import select
import selectors
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from docmind_lab.virtual_time import times
from docmind_lab.virtual_time.kernel import Actor, current_actor

_PROCESS = "a process of its own"
# Name in `os` → what is refused; not every system has all of them.
_PROCESSES = ("system", "fork", "forkpty", "posix_spawn", "posix_spawnp")
_SOCKET_METHODS = ("accept", "connect_ex", "recvfrom", "recvfrom_into", "recvmsg", "sendto", "sendmsg")
_AUDITED = frozenset(
    {
        "socket.connect",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
        "socket.getnameinfo",
    }
)
# What a library loaded by ctypes is asked for before it can reach a socket.
_OF_C = frozenset({"connect", "sendto", "sendmsg", "getaddrinfo", "gethostbyname", "gethostbyaddr"})
_SELECTORS = ("SelectSelector", "PollSelector", "EpollSelector", "KqueueSelector")
# Event loops that wait in ways of their own.
_FOREIGN_LOOPS = (
    ("trio", "run"),
    ("uvloop", "run"),
    ("uvloop", "new_event_loop"),
    ("gevent", "sleep"),
    ("gevent", "spawn"),
    ("gevent", "joinall"),
)


def _refusal(what: str) -> Callable[..., Any]:
    def refuse(actor: Actor, *_: Any, **__: Any) -> Any:
        actor.kernel.refuse(what)

    return refuse


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _AUDITED:
        what = event
    elif event == "ctypes.dlsym" and arguments[-1] in _OF_C:
        what = f"{arguments[-1]}, by ctypes,"
    else:
        return
    actor = current_actor()
    if actor is not None:
        actor.kernel.refuse(what)


@functools.cache
def watch_sockets() -> None:
    """Refuse every connection and name look-up of the actors of this process; no audit hook is ever removed."""
    sys.addaudithook(_audit)


def replacements() -> list[tuple[Any, Any]]:
    """Return pairs of a builtin and its replacement during a run."""
    pairs: list[tuple[Any, Any]] = [(select.select, times.replace_builtin(select.select, _select))]
    for name in _PROCESSES:
        real = getattr(os, name, None)
        if real is not None:
            pairs.append((real, times.replace_builtin(real, _refusal(f"os.{name}, {_PROCESS},"))))
    return pairs


def methods() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Yield owner, name and replacement `(actor, …) → result` for methods of the modules imported by now."""
    yield multiprocessing.process.BaseProcess, "start", _refusal(f"multiprocessing.Process.start, {_PROCESS},")
    # An event loop of another kind makes a pair of sockets to wake itself.
    yield socket, "socketpair", _refusal("socket.socketpair (or an event loop that is not asyncio.new_event_loop's)")
    for name in _SOCKET_METHODS:
        if hasattr(socket.socket, name):
            yield socket.socket, name, _refusal(f"socket.{name}")
    for name in _SELECTORS:
        owner = getattr(selectors, name, None)
        if owner is not None:
            yield owner, "select", _polling_select(owner.select, name)
    for module_name, name in _FOREIGN_LOOPS:
        module = sys.modules.get(module_name)
        if module is not None and hasattr(module, name):
            yield module, name, _refusal(f"{module_name}.{name}, an event loop of its own,")


def _select(actor: Actor, read: Any, write: Any, urgent: Any, timeout: float | None = None) -> Any:
    """Act as `select.select` with a timeout of 0, and sleep if there are no files; refuse all other calls."""
    if timeout is not None and timeout <= 0:
        return times.real_select(read, write, urgent, timeout)
    if timeout is None or read or write or urgent:
        actor.kernel.refuse("select.select")
    times.sleep(actor, timeout)
    return [], [], []


def _polling_select(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def poll(actor: Actor, selector: Any, timeout: float | None = None) -> Any:
        if timeout is None or timeout > 0:
            actor.kernel.refuse(f"{name}.select")
        return real(selector, timeout)

    return poll
