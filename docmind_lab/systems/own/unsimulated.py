"""Refuse what has no virtual time in a run of a user's graph, by name: other connections, drivers, programs, queues."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import importlib
import multiprocessing
import os
import platform
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Protocol

from docmind_lab.core.users_code import line_at_work
from docmind_lab.network.clients.installing import HELD_LIBRARIES
from docmind_lab.network.replacements import Replacements

REMEDY: Final = "use the wall clock with the graph's own services: world=dl.Live() (--services own)"
"""For what simulated services do not answer."""
RUNS_FOR_REAL: Final = "use the wall clock, on which it runs for real: World(clock='wall') (--clock wall)"
"""For what needs no service."""
_MCP_CLIENT: Final = os.path.join("", "mcp", "client", "")


class Refuser(Protocol):
    """The observer of a run."""

    def not_simulated(self, what: str, *, remedy: str) -> BaseException:
        """Return the error for something that has no virtual time, which ends the run."""
        ...


def refuse_unsimulated(hooks: Replacements, find: Callable[[], Refuser | None]) -> None:
    """Make functions that leave virtual time raise a clear error, where they would fail oddly or block.

    find: returns the observer of the calling code's run; None for code outside a run.
    """

    # Clients say what machine they are on, and Python asks a subprocess for it, once.
    platform.platform()

    def refusing(what: Callable[..., str], remedy: str = REMEDY) -> Callable[[Any], Any]:
        def make(previous: Any) -> Any:
            def refused(*arguments: Any, **options: Any) -> Any:
                observer = find()
                if observer is None or (remedy is RUNS_FOR_REAL and (_is_importing() or _is_printing())):
                    return previous(*arguments, **options)
                raise observer.not_simulated(what(*arguments, **options), remedy=remedy)

            return refused

        return make

    no_http = f"that is not made by {HELD_LIBRARIES} (a database driver, gRPC, a web socket) has no virtual time"
    look_up = f"a name look-up (socket.getaddrinfo) {no_http}"
    hooks.replace(socket, "getaddrinfo", refusing(lambda host, *_, **__: f"{_text(host)}: {look_up}{_at_line()}"))
    connection = f"a connection {no_http}"
    hooks.replace(socket.socket, "connect", refusing(lambda _, to, *__: f"{_address(to)}: {connection}{_at_line()}"))
    by_popen = refusing(lambda _, program="", *__, **options: _no_process(options.get("args", program)), RUNS_FOR_REAL)
    for owner, function, what in _compiled():
        hooks.replace(
            owner, function, refusing(lambda *_, what=what, **__: f"{what} has no virtual time", RUNS_FOR_REAL)
        )
    hooks.replace(subprocess.Popen, "__init__", by_popen)
    hooks.replace(os, "system", refusing(_no_process, RUNS_FOR_REAL))
    for name in ("subprocess_exec", "subprocess_shell"):
        by_loop = refusing(lambda *values, **_: _no_process(values[2] if len(values) > 2 else ""), RUNS_FOR_REAL)
        hooks.replace(asyncio.BaseEventLoop, name, by_loop)

    # No other process runs in virtual time to share it with.
    a_queue = "a queue of multiprocessing waits in real time, not in virtual time; threads share a queue.Queue"
    for name in ("Queue", "JoinableQueue", "SimpleQueue"):
        hooks.replace(multiprocessing, name, refusing(lambda *_, **__: a_queue, RUNS_FOR_REAL))


_DRIVER, _GRPC, _CURL, _ZMQ = "a database driver", "a gRPC channel", "libcurl itself", "a socket of ZeroMQ"
_RUST = "a client in Rust, as searches with DuckDuckGo's library (ddgs) have it"
# What connects or waits below Python's sockets: module, the function or method that does, what it is.
_COMPILED: Final = (
    ("psycopg2", "_connect", _DRIVER),
    ("psycopg.generators", "connect", _DRIVER),
    ("psycopg.generators", "execute", _DRIVER),
    ("MySQLdb", "connect", _DRIVER),
    ("pyodbc", "connect", _DRIVER),
    ("pymssql", "connect", _DRIVER),
    ("curl_cffi.curl", "Curl.perform", _CURL),
    ("curl_cffi.aio", "AsyncCurl.add_handle", _CURL),
    ("pycurl", "Curl", _CURL),
    ("pycurl", "CurlMulti", _CURL),
    ("primp", "Client", _RUST),
    ("primp", "AsyncClient", _RUST),
    ("zmq", "Socket.connect", _ZMQ),
    ("zmq", "Socket.bind", _ZMQ),
    ("grpc._channel", "Channel.subscribe", _GRPC),
    ("grpc._channel", "_UnaryUnaryMultiCallable._blocking", _GRPC),
    ("grpc._channel", "_UnaryUnaryMultiCallable.future", _GRPC),
    ("grpc._channel", "_SingleThreadedUnaryStreamMultiCallable.__call__", _GRPC),
    ("grpc._channel", "_UnaryStreamMultiCallable.__call__", _GRPC),
    ("grpc._channel", "_StreamUnaryMultiCallable._blocking", _GRPC),
    ("grpc._channel", "_StreamUnaryMultiCallable.future", _GRPC),
    ("grpc._channel", "_StreamStreamMultiCallable.__call__", _GRPC),
    ("grpc.aio", "insecure_channel", _GRPC),
    ("grpc.aio", "secure_channel", _GRPC),
    ("grpc.aio._channel", "UnaryUnaryMultiCallable.__call__", _GRPC),
    ("grpc.aio._channel", "UnaryStreamMultiCallable.__call__", _GRPC),
    ("grpc.aio._channel", "StreamUnaryMultiCallable.__call__", _GRPC),
    ("grpc.aio._channel", "StreamStreamMultiCallable.__call__", _GRPC),
)


@functools.cache
def _compiled() -> tuple[tuple[Any, str, str], ...]:
    """Return those that are installed: the module or class, the name of its function, and what it is."""
    there: list[tuple[Any, str, str]] = []
    for name, path, what in _COMPILED:
        # Imported here, since a node may import it in a run, when it is looked for no more.
        with contextlib.suppress(Exception):  # it is not there, or lacks its library, of which it has errors of its own
            *classes, function = path.split(".")
            owner = functools.reduce(getattr, classes, importlib.import_module(name))
            getattr(owner, function)
            there.append((owner, function, f"{name.partition('.')[0]}: {what}"))
    return tuple(there)


# A program that clients, such as the driver of MySQL, ask for the name of the system. They go on where there is none.
_DISPENSABLE = "lsb_release"


def _is_importing() -> bool:
    """Whether the calling code is a module's that is being imported, which takes no time."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != "<frozen importlib._bootstrap>":
        frame = frame.f_back
    return frame is not None


def _is_printing() -> bool:
    """Whether the calling code is Jupyter's, by which each thread hands on what it prints within the process."""
    return sys._getframe(2).f_globals.get("__name__") == "ipykernel.iostream"


def _no_process(command: Any) -> str:
    """Return why a program is not started. Raises: FileNotFoundError for one that callers can do without.

    command: as `subprocess` takes it.
    """
    program = command if isinstance(command, str | bytes | os.PathLike) else next(iter(command), "")
    # Without its folder and arguments, which may hold a path of the machine, or a key.
    name = os.path.basename(os.fsdecode(program).split(" ")[0])
    if name == _DISPENSABLE:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    reason = f"{name or 'a program'}: a subprocess runs in real time, not in virtual time"
    is_of_mcp = any(_MCP_CLIENT in frame.filename for frame in traceback.extract_stack())
    return f"{reason}; an MCP server can be in this process, over its SDK's memory transport" if is_of_mcp else reason


def _at_line() -> str:
    line = line_at_work()
    return f", at {line}" if line else ""


def _text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)


def _address(address: Any) -> str:
    with contextlib.suppress(TypeError, IndexError):
        return f"{_text(address[0])}:{address[1]}" if isinstance(address, tuple) else _text(address)
    return str(address)
