"""http.client, and so urllib3, requests, urllib and httplib2: observed in runs of a user's graph, and held.

The socket that a connection reads from is wrapped, so each send and each receive waits no longer than what is left.
Name look-up and the wait for a pooled connection have no limit. Production holds urllib3 alone. Where services are
simulated, a connection has no socket, and httpx sends its requests.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import io
import os
import socket
import ssl
import sys
import weakref
from collections.abc import Callable
from typing import Any

import httpx

from docmind_lab.core.deadlines import CappedTimeout, Deadline
from docmind_lab.core.holds import Hold, blocking_on, current_hold
from docmind_lab.network.attempts import is_sending, sending_scope
from docmind_lab.network.clients.in_memory import MemorySocket, socket_error
from docmind_lab.network.clients.watching import (
    Observer,
    exchange_of,
    hold_in_force,
    is_late,
    note_failures,
    note_head,
    observer_of_run,
)
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.replacements import Replacements

_TLS_PORT = 443
# 0 would make a socket one that does not wait at all.
_LEAST_S = 0.001


class HttpClientAdapter(Replacements):
    """Hooks on http.client's connections and on those that are made from them."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()

    def hold(self) -> None:
        """Replace the methods by which urllib3 connects and sends, until `remove`."""
        from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - only where it is to be held

        self.replace(HTTPConnection, "connect", _wrap_connect)
        self.replace(HTTPSConnection, "connect", _wrap_connect)
        self.replace(HTTPConnection, "request", _wrap_request)

    def observe(self) -> None:
        """Replace the methods of http.client and of what is made from it, until `remove`."""
        kinds: list[type] = [http.client.HTTPConnection, http.client.HTTPSConnection]
        if importlib.util.find_spec("httplib2") is not None:
            # Below Google's API client. Its connections connect by themselves too.
            import httplib2  # noqa: PLC0415 - it may not be installed

            kinds += [httplib2.HTTPConnectionWithTimeout, httplib2.HTTPSConnectionWithTimeout]
        for kind in kinds:
            self.replace(kind, "connect", _wrap_connect)
        if importlib.util.find_spec("urllib3") is not None:
            from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - it may not be installed

            kinds += [HTTPConnection, HTTPSConnection]
        for kind in kinds:
            self.replace(kind, "connect", _wrap_connect_in_memory)
        self.replace(http.client.HTTPConnection, "putrequest", self._wrap_putrequest)
        self.replace(http.client.HTTPConnection, "send", self._wrap_send)
        self.replace(http.client.HTTPConnection, "getresponse", self._wrap_getresponse)

    def _wrap_putrequest(self, previous: Any) -> Any:
        def putrequest(connection: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            observer = _observer(connection)
            in_memory = _is_in_memory(connection)
            if observer is not None and observer.is_simulated:
                # Made before the run, it leads to the real host.
                if connection.sock is not None and not in_memory:
                    connection.close()
            elif observer is not None and not is_sending():
                self._under_way[connection] = exchange_of(observer, method, _address(connection, url))
            elif in_memory and not connection.sock.is_in_force():
                connection.close()
            with sending_scope():
                return previous(connection, method, url, *arguments, **options)

        return putrequest

    def _wrap_send(self, previous: Any) -> Any:
        def send(connection: Any, data: Any) -> Any:
            exchange = self._under_way.get(connection)
            if exchange is not None:
                exchange.note_sent(data if isinstance(data, bytes) else b"")
            with contextlib.nullcontext() if exchange is None else note_failures(exchange):
                if not _opens_tunnel(connection):
                    _hold_socket(connection)
                return previous(connection, data)

        return send

    def _wrap_getresponse(self, previous: Any) -> Any:
        def getresponse(connection: Any) -> Any:
            exchange = self._under_way.pop(connection, None)
            if exchange is None:
                return previous(connection)
            with note_failures(exchange):
                response = previous(connection)
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.getheaders()]
            note_head(exchange, response.status, raw)
            # http.client gives the file up with the last byte, or when the response is closed before.
            if response.fp is None:
                exchange.complete()
            else:
                response.fp = _NotedFile(response.fp, exchange, response)
            return response

        return getresponse


def _opens_tunnel(connection: Any) -> bool:
    """Whether what is sent is for a proxy, on a socket that TLS is to wrap."""
    is_wrapped = isinstance(connection.sock, ssl.SSLSocket | _HeldSocket)
    return bool(getattr(connection, "_tunnel_host", None)) and connection.sock is not None and not is_wrapped


def _observer(connection: Any) -> Observer | None:
    return observer_of_run(str(_host_of(connection)))


def _is_in_memory(connection: Any) -> bool:
    sock = connection.sock
    return isinstance(sock._inner if isinstance(sock, _HeldSocket) else sock, MemorySocket)


def _wrap_connect_in_memory(previous: Any) -> Any:
    def connect(connection: Any) -> Any:
        observer = _observer(connection)
        if observer is None or not observer.is_simulated:
            return previous(connection)

        def is_in_force() -> bool:
            observer = _observer(connection)
            return observer is not None and observer.is_simulated

        scheme = "https" if connection.default_port == _TLS_PORT else "http"
        timeout_s = _default_timeout_s(connection.timeout)
        connection.sock = MemorySocket(scheme, timeout_s, _translator(connection), is_in_force)
        if hasattr(connection, "is_verified"):
            connection.is_verified = True
        return None

    return connect


def _default_timeout_s(timeout: Any) -> float | None:
    """Return a timeout of http.client in seconds; None for no limit. timeout: a number, None, or "the default"."""
    return timeout if timeout is None or isinstance(timeout, int | float) else socket.getdefaulttimeout()


def _translator(connection: Any) -> Callable[[Exception], Exception]:
    """Return what makes the library's errors of httpx's: urllib3 tells failed connections from failed reads."""
    if not _is_of_urllib3(connection):
        return socket_error
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError  # noqa: PLC0415 - it is there

    def translated(error: Exception) -> Exception:
        if isinstance(error, httpx.ConnectTimeout):
            return ConnectTimeoutError(connection, "the connection timed out")
        if isinstance(error, httpx.ConnectError):
            return NewConnectionError(connection, f"cannot connect: {error}")
        return socket_error(error)

    return translated


def _address(connection: Any, target: str) -> str:
    """Return the URL of a request: its target may have one, for a proxy."""
    if "://" in target.partition("?")[0]:
        return target
    host = _host_of(connection)
    port = getattr(connection, "_tunnel_port", None) or connection.port
    scheme = "https" if connection.default_port == _TLS_PORT else "http"
    name = f"[{host}]" if ":" in host else host
    place = name if port in (None, connection.default_port) else f"{name}:{port}"
    return f"{scheme}://{place}{target}"


def _host_of(connection: Any) -> Any:
    # Private, and the only place where a connection through a proxy says where it leads to.
    return getattr(connection, "_tunnel_host", None) or connection.host


class _NotedFile(io.RawIOBase):
    """The file of a response; what its reads return is noted."""

    _is_at_end = False

    def __init__(self, inner: Any, exchange: Exchange, response: Any) -> None:
        self._inner, self._exchange = inner, exchange
        self._chunked, self._response = bool(response.chunked), weakref.ref(response)

    def _pass(self, read: Callable[..., Any], *arguments: Any) -> Any:
        with note_failures(self._exchange):
            return read(*arguments)

    def _note(self, data: bytes) -> bytes:
        # Between chunks is no body.
        if not (self._chunked and data == b"\r\n"):
            self._exchange.note_body(data)
        if not data:
            self._is_at_end = True
        return data

    def readable(self) -> bool:
        return True

    def read(self, *arguments: Any) -> Any:
        return self._note(self._pass(self._inner.read, *arguments))

    def read1(self, *arguments: Any) -> Any:
        return self._note(self._pass(self._inner.read1, *arguments))

    def peek(self, *arguments: Any) -> Any:
        return self._pass(self._inner.peek, *arguments)

    def readinto(self, buffer: Any) -> Any:
        count = self._pass(self._inner.readinto, buffer)
        self._note(bytes(buffer[: count or 0]))
        return count

    def readline(self, *arguments: Any) -> Any:
        line = self._pass(self._inner.readline, *arguments)
        if self._chunked and line.strip() == b"0":
            self._is_at_end = True
        return line if self._chunked else self._note(line)

    def close(self) -> None:
        if not self.closed:
            response = self._response()
            if self._is_at_end or (response is not None and response.length == 0):
                self._exchange.complete()
            else:
                self._exchange.note_closed()
            self._inner.close()
        super().close()


# ---- what holds it


class _HeldSocket:
    """A blocking socket whose waits are bounded by the hold in force; everything else is the socket's own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sendall(self, data: Any, *arguments: Any) -> Any:
        with _bounded(self._inner):
            return self._inner.sendall(data, *arguments)

    def makefile(self, mode: str = "r", buffering: int | None = None, **options: Any) -> Any:
        if mode != "rb":
            return self._inner.makefile(mode, buffering, **options)
        return io.BufferedReader(_HeldFile(self._inner))


class _HeldFile(io.RawIOBase):
    """The readable end of a held socket."""

    def __init__(self, inner: Any) -> None:
        self._socket, self._raw = inner, inner.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        bounded = _bounded(self._socket)
        try:
            with bounded:
                count: int | None = self._raw.readinto(buffer)
        except TimeoutError:
            if not bounded.is_lifted:
                raise
            # A file of a socket reads no more once it has timed out; another one of the same socket does.
            self._raw.close()
            self._raw = self._socket.makefile("rb", buffering=0)
            own_s = self._socket.gettimeout()
            self._socket.settimeout(None if own_s is None else own_s - bounded.allowed_s)
            try:
                return self.readinto(buffer)
            finally:
                self._socket.settimeout(own_s)
        return count

    def close(self) -> None:
        # The socket counts its files, and is closed with the last one.
        self._raw.close()
        super().close()


class _bounded:  # noqa: N801 - used as a function
    """Bound one wait on a socket by the hold in force. Raises: RunCut if the deadline or the caller ends it."""

    def __init__(self, inner: Any) -> None:
        self._socket, self.is_lifted = inner, False

    def __enter__(self) -> None:
        self._held, hold = hold_in_force(), current_hold()
        # The hold of a task may be cancelled after its deadline has been lifted.
        self._lifted = hold if self._held is None and hold is not None and hold.only_tells else None
        if self._held is None and self._lifted is None:
            return
        self._waiting = blocking_on(self._shut_down)
        self._waiting.__enter__()
        if self._held is None:
            return
        hold, deadline = self._held
        self._timeout_s = self.allowed_s = self._socket.gettimeout()
        if hold.policy.cap == "total":
            if isinstance(self._socket, MemorySocket):
                # It takes the deadline from its timeout.
                self.allowed_s = CappedTimeout.of(self._timeout_s, deadline)
            else:
                self.allowed_s = deadline.cap(self._timeout_s)
            self._socket.settimeout(max(_LEAST_S, self.allowed_s))

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):
            # Below TLS, whose own way of closing is not safe while another thread reads.
            if isinstance(self._socket, socket.socket):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._lifted is not None:
            self._waiting.__exit__()
            if self._lifted.was_cancelled:
                raise self._lifted.cut() from error
        if self._held is None:
            return
        self._waiting.__exit__()
        hold, deadline = self._held
        with contextlib.suppress(OSError):
            self._socket.settimeout(self._timeout_s)
        if deadline.in_force != deadline and not hold.was_cancelled:
            self.is_lifted = self._timeout_s is None or self.allowed_s < self._timeout_s
            return
        is_late = isinstance(error, TimeoutError) and deadline.ends_a_wait
        if hold.was_cancelled or is_late:
            raise hold.cut() from error


# Connections of urllib3 that were made under the hooks.
_connected: weakref.WeakSet[Any] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a forked process: use no connection again that its parent has made, or answers to both would get mixed."""
    for connection in _connected:
        connection.close()


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _hold_on(connection: Any) -> tuple[Hold, Deadline] | None:
    """Return the hold on a request of a connection, and its deadline; None for one that is not held."""
    held = hold_in_force()
    return held if held is not None and (held[0].every_client or _is_of_urllib3(connection)) else None


def _is_of_urllib3(connection: Any) -> bool:
    kind = getattr(sys.modules.get("urllib3.connection"), "HTTPConnection", None)
    return kind is not None and isinstance(connection, kind)


def _hold_socket(connection: Any) -> None:
    """Have what a connection sends and receives from now on bounded, if its request is held; connect it before."""
    if isinstance(connection.sock, _HeldSocket) or _hold_on(connection) is None:
        return
    if connection.sock is None and connection.auto_open:
        connection.connect()
    if connection.sock is not None:
        connection.sock = _HeldSocket(connection.sock)


def _wrap_connect(previous: Any) -> Any:
    def connect(connection: Any) -> Any:
        _connected.add(connection)
        held = _hold_on(connection)
        if held is None:
            return previous(connection)
        hold, deadline = held
        hold.refuse_if_over()
        timeout_s = connection.timeout
        own_s = timeout_s if isinstance(timeout_s, int | float) else None
        connection.timeout = max(_LEAST_S, deadline.cap(own_s))
        try:
            return previous(connection)
        except Exception as error:
            if is_late(hold):
                raise hold.cut() from error
            raise
        finally:
            connection.timeout = timeout_s

    return connect


def _wrap_request(previous: Any) -> Any:
    def request(connection: Any, *arguments: Any, **options: Any) -> Any:
        held = hold_in_force()
        if held is None:
            return previous(connection, *arguments, **options)
        held[0].refuse_if_over()
        _hold_socket(connection)
        wire = wire_in_force()
        if wire is not None:
            from urllib3 import HTTPHeaderDict  # noqa: PLC0415 - it is there

            names = ("method", "url", "body", "headers")
            options = {**dict(zip(names, arguments, strict=False)), **options}
            # A copy: the caller's own headers, sent again, have another time left.
            headers = options["headers"] = HTTPHeaderDict(options.get("headers") or {})
            # What goes through a proxy goes to a host that is not known here.
            host = "" if connection.proxy is not None else connection.host
            wire.change(headers, host, connection.port, held[1])
            arguments = ()
        return previous(connection, *arguments, **options)

    return request
