"""http.client, and so urllib3, requests, urllib and httplib2: observed in runs of a user's graph, held in production.

In production urllib3 alone is held: the socket that it reads from is wrapped, so each send and each receive waits no
longer than what is left. Name look-up and the wait for a pooled connection have no limit there.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import importlib.util
import io
import os
import socket
import weakref
from collections.abc import Callable
from typing import Any

import httpx

from docmind_lab.core.holds import blocking_on, current_hold
from docmind_lab.network.carried import CarriedSocket, default_timeout_s, socket_error
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.library_watch import Find, exchange_of, hold_in_force, is_late, note_failures, note_head
from docmind_lab.network.replacements import Replacements

_TLS_PORT = 443


class HttpClientHooks:
    """Hooks on http.client's connections and on urllib3's, which are made from them."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._under_way: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()

    def install(self, hooks: Replacements) -> None:
        """Replace the methods of http.client and urllib3 until `hooks` are removed."""
        kinds: list[type] = [http.client.HTTPConnection, http.client.HTTPSConnection]
        if importlib.util.find_spec("urllib3") is not None:
            from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - it may not be installed

            kinds += [HTTPConnection, HTTPSConnection]
        if importlib.util.find_spec("httplib2") is not None:
            # Below Google's API client. Its connections connect by themselves too.
            import httplib2  # noqa: PLC0415 - it may not be installed

            kinds += [httplib2.HTTPConnectionWithTimeout, httplib2.HTTPSConnectionWithTimeout]
        for kind in kinds:
            hooks.replace(kind, "connect", self._wrap_connect)
        hooks.replace(http.client.HTTPConnection, "putrequest", self._wrap_putrequest)
        hooks.replace(http.client.HTTPConnection, "send", self._wrap_send)
        hooks.replace(http.client.HTTPConnection, "getresponse", self._wrap_getresponse)

    def _carries(self, host: str) -> bool:
        watch = self._find(host)
        return watch is not None and watch.carries

    def _wrap_connect(self, previous: Any) -> Any:
        def connect(connection: Any) -> Any:
            host = str(_host_of(connection))
            if not self._carries(host):
                return previous(connection)
            scheme = "https" if connection.default_port == _TLS_PORT else "http"
            timeout_s = default_timeout_s(connection.timeout)
            in_force = functools.partial(self._carries, host)
            connection.sock = CarriedSocket(scheme, timeout_s, _translator(connection), in_force)
            if hasattr(connection, "is_verified"):
                connection.is_verified = True
            return None

        return connect

    def _wrap_putrequest(self, previous: Any) -> Any:
        def putrequest(connection: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            watch = self._find(str(_host_of(connection)))
            if watch is not None and watch.carries:
                # Made before the run, it leads to the real host.
                if connection.sock is not None and not isinstance(connection.sock, CarriedSocket):
                    connection.close()
            elif watch is not None:
                self._under_way[connection] = exchange_of(watch, method, _address(connection, url))
            elif isinstance(connection.sock, CarriedSocket) and not connection.sock.is_in_force():
                connection.close()
            return previous(connection, method, url, *arguments, **options)

        return putrequest

    def _wrap_send(self, previous: Any) -> Any:
        def send(connection: Any, data: Any) -> Any:
            exchange = self._under_way.get(connection)
            if exchange is None:
                return previous(connection, data)
            exchange.note_sent(data if isinstance(data, bytes) else b"")
            with note_failures(exchange):
                _bound(connection.sock, exchange)
                return previous(connection, data)

        return send

    def _wrap_getresponse(self, previous: Any) -> Any:
        def getresponse(connection: Any) -> Any:
            exchange = self._under_way.pop(connection, None)
            if exchange is None:
                return previous(connection)
            sock = connection.sock
            with note_failures(exchange):
                _bound(sock, exchange)
                response = previous(connection)
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.getheaders()]
            note_head(exchange, response.status, raw)
            # http.client gives the file up with the last byte, or when the response is closed before.
            if response.fp is None:
                exchange.complete()
            else:
                response.fp = _NotedFile(response.fp, sock, exchange, response)
            return response

        return getresponse


def _translator(connection: Any) -> Callable[[Exception], Exception]:
    """Return what makes the library's errors of httpx's: urllib3 tells failed connections from failed reads."""
    if not type(connection).__module__.startswith(("urllib3", "botocore")):
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
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in (None, connection.default_port) else f"{shown}:{port}"
    return f"{scheme}://{place}{target}"


def _host_of(connection: Any) -> Any:
    # Private, and the only place where a connection through a proxy says where it leads to.
    return getattr(connection, "_tunnel_host", None) or connection.host


def _bound(sock: Any, exchange: Exchange) -> None:
    """Bound the next wait of a socket by the limits of its request."""
    limit_s = exchange.timeouts.get("read")
    if sock is None or limit_s is None:
        return
    left_s = limit_s if exchange.deadline is None else exchange.deadline.cap(limit_s)
    given_s = sock.gettimeout()
    # 0 would make the socket one that does not wait at all.
    sock.settimeout(max(0.001, left_s if given_s is None else min(given_s, left_s)))


class _NotedFile(io.RawIOBase):
    """The file of a response: its reads are bounded, and what they return is noted."""

    _is_at_end = False

    def __init__(self, inner: Any, sock: Any, exchange: Exchange, response: Any) -> None:
        self._inner, self._socket, self._exchange = inner, sock, exchange
        self._chunked, self._response = bool(response.chunked), weakref.ref(response)

    def _pass(self, read: Callable[..., Any], *arguments: Any) -> Any:
        with note_failures(self._exchange):
            with contextlib.suppress(OSError):  # a socket that is closed already has its last bytes here
                _bound(self._socket, self._exchange)
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


# ---- in production


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
            self.allowed_s = deadline.cap(self._timeout_s)
            # 0 would make the socket one that does not wait at all.
            self._socket.settimeout(max(0.001, self.allowed_s))

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):
            # Below TLS, whose own way of closing is not safe while another thread reads.
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


def hold_urllib3() -> Replacements:
    """Replace the methods by which urllib3 connects and sends, and return what puts them back."""
    from urllib3 import HTTPHeaderDict  # noqa: PLC0415 - only where it is to be held
    from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - as above

    made = Replacements()

    def held_connect(previous: Any) -> Any:
        def connect(connection: Any) -> Any:
            _connected.add(connection)
            held = hold_in_force()
            if held is None:
                return previous(connection)
            hold, deadline = held
            hold.refuse_if_over()
            timeout_s = connection.timeout
            given_s = timeout_s if isinstance(timeout_s, int | float) else None
            connection.timeout = max(0.001, deadline.cap(given_s))
            try:
                return previous(connection)
            except Exception as error:
                if is_late(hold):
                    raise hold.cut() from error
                raise
            finally:
                connection.timeout = timeout_s

        return connect

    def held_request(previous: Any) -> Any:
        def request(connection: Any, *arguments: Any, **options: Any) -> Any:
            held = hold_in_force()
            if held is None:
                return previous(connection, *arguments, **options)
            held[0].refuse_if_over()
            if connection.sock is None:
                connection.connect()
            if not isinstance(connection.sock, _HeldSocket):
                connection.sock = _HeldSocket(connection.sock)
            wire = wire_in_force()
            if wire is not None:
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

    made.replace(HTTPConnection, "connect", held_connect)
    made.replace(HTTPSConnection, "connect", held_connect)
    made.replace(HTTPConnection, "request", held_request)
    return made
