"""http.client, and so urllib3, requests, urllib and httplib2: observed in runs of a user's graph, and held.

The socket that a connection reads from is wrapped, so each send and each receive waits no longer than what is left.
Name look-up and the wait for a pooled connection have no limit. Production holds urllib3 alone. Where services are
simulated, a connection has no socket, and httpx sends its requests.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import socket
import ssl
import sys
import weakref
from typing import Any
from urllib.parse import urlsplit

import httpx

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.holds import Hold
from docmind_lab.network.attempts import is_sending, sending_scope
from docmind_lab.network.clients.held_socket import LEAST_S, HeldSocket
from docmind_lab.network.clients.in_memory import MemorySocket
from docmind_lab.network.clients.watching import (
    Observer,
    ResponseWatcher,
    exchange_of,
    held_code,
    hold_in_force,
    is_late,
    limited_exchange,
    note_failures,
    observer_of_run,
)
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.replacements import Replacements
from docmind_lab.network.wrapping_up import wrap_up_body

_TLS_PORT = 443


class HttpClientAdapter(Replacements):
    """Hooks on http.client's connections and on those that are made from them."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()

    def hold(self) -> None:
        """Replace the methods by which urllib3 connects and sends, until `remove`."""
        kinds = _classes("urllib3.connection", "HTTPConnection", "HTTPSConnection")
        for kind in kinds:
            self.replace(kind, "connect", self._wrap_connect)
        for kind in kinds[:1]:
            self.replace(kind, "request", self._wrap_request)

    def observe(self) -> None:
        """Replace the methods of http.client and of what is made from it, until `remove`."""
        kinds = _classes("http.client", "HTTPConnection", "HTTPSConnection")
        # Below Google's API client. Its connections connect by themselves too.
        kinds += _classes("httplib2", "HTTPConnectionWithTimeout", "HTTPSConnectionWithTimeout")
        for kind in kinds:
            self.replace(kind, "connect", self._wrap_connect)
        for kind in kinds + _classes("urllib3.connection", "HTTPConnection", "HTTPSConnection"):
            self.replace(kind, "connect", _wrap_connect_in_memory)
        self.replace(http.client.HTTPConnection, "putrequest", self._wrap_putrequest)
        self.replace(http.client.HTTPConnection, "send", self._wrap_send)
        self.replace(http.client.HTTPConnection, "getresponse", self._wrap_getresponse)

    def _wrap_connect(self, previous: Any) -> Any:
        def connect(connection: Any) -> Any:
            _connected.add(connection)
            held = _hold_on(connection)
            if held is None:
                return previous(connection)
            hold, deadline = held
            hold.refuse_if_over()
            exchange, timeout_s = self._under_way.get(connection), connection.timeout
            bound = exchange.limit_bound if exchange is not None else None
            connection.timeout = max(LEAST_S, (bound or deadline).cap(_timeout_of(connection)))
            try:
                return previous(connection)
            except Exception as error:
                if is_late(hold):
                    raise hold.cut() from error
                if exchange is not None and exchange.limit_over:
                    exchange.note_failure(httpx.ConnectTimeout(str(error)))
                raise
            finally:
                connection.timeout = timeout_s

        return connect

    def _wrap_request(self, previous: Any) -> Any:
        def request(
            connection: Any, method: str, url: str, body: Any = None, headers: Any = None, *rest: Any, **options: Any
        ) -> Any:
            held, wire = hold_in_force(), wire_in_force()
            if held is not None:
                held[0].refuse_if_over()
            if held_code() is not None:
                self._bound_request(connection, method, url)
                if not _is_simulated(connection):
                    body, headers = _wrap_up(connection, url, body, headers)
            if held is not None and wire is not None:
                from urllib3 import HTTPHeaderDict  # noqa: PLC0415 - it is there

                # A copy: the caller's own headers, sent again, have another time left.
                headers = HTTPHeaderDict(headers or {})
                # What goes through a proxy goes to a host that is not known here.
                host = "" if connection.proxy is not None else connection.host
                wire.change(headers, host, connection.port, held[1])
            return previous(connection, method, url, body, headers, *rest, **options)

        return request

    def _bound_request(self, connection: Any, method: str, url: str) -> None:
        """Bound the waits of a request that is about to be sent, and watch its response if it has an exchange."""
        exchange = limited_exchange(method, _address(connection, url)) if _observer(connection) is None else None
        # The connection's request before this one may have left its own.
        self._under_way.pop(connection, None)
        if exchange is not None:
            self._under_way[connection] = exchange
        _hold_socket(connection, is_watched=exchange is not None)
        if exchange is not None and connection.sock is not None:
            _held_socket(connection).watcher = ResponseWatcher(exchange, method)

    def _wrap_putrequest(self, previous: Any) -> Any:
        def putrequest(connection: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            observer = _observer(connection)
            is_simulated = observer is not None and observer.is_simulated
            if connection.sock is not None and is_simulated != _is_in_memory(connection):
                # Made before or after the run of this request, it leads to another host.
                connection.close()
            if observer is not None and not is_simulated and not is_sending():
                self._under_way[connection] = exchange_of(observer, method, _address(connection, url))
            with sending_scope():
                return previous(connection, method, url, *arguments, **options)

        return putrequest

    def _wrap_send(self, previous: Any) -> Any:
        def send(connection: Any, data: Any) -> Any:
            exchange = self._under_way.get(connection)
            if exchange is not None:
                exchange.note_sent(data if isinstance(data, bytes) else b"")
            with note_failures(exchange):
                if not _opens_tunnel(connection):
                    _hold_socket(connection)
                return previous(connection, data)

        return send

    def _wrap_getresponse(self, previous: Any) -> Any:
        def getresponse(connection: Any) -> Any:
            exchange = self._under_way.pop(connection, None)
            if exchange is not None:
                # Through a tunnel, the socket has not been wrapped before.
                _held_socket(connection).watcher = ResponseWatcher(exchange, connection._method)
            return previous(connection)

        return getresponse


def _wrap_up(connection: Any, target: str, body: Any, headers: Any) -> tuple[Any, Any]:
    """Return body and headers of a request of urllib3: its own, or others where a model is told to end."""
    raw = [(str(name).encode(), str(value).encode()) for name, value in dict(headers or {}).items()]
    content = body.encode() if isinstance(body, str) else body
    host, path = str(_host_of(connection)), urlsplit(_address(connection, target)).path
    new_body = wrap_up_body(host, path, raw, lambda: content if isinstance(content, bytes) else None)
    if new_body is None:
        return body, headers
    rest = {name: value for name, value in (headers or {}).items() if str(name).lower() != "content-length"}
    return new_body, {**rest, "Content-Length": str(len(new_body))}


def _classes(module: str, *names: str) -> list[type]:
    """Return classes of a module; none where it is not installed."""
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        return []
    return [getattr(importlib.import_module(module), name) for name in names]


def _opens_tunnel(connection: Any) -> bool:
    """Whether what is sent is for a proxy, on a socket that TLS is to wrap."""
    is_wrapped = isinstance(connection.sock, ssl.SSLSocket | HeldSocket)
    return bool(getattr(connection, "_tunnel_host", None)) and connection.sock is not None and not is_wrapped


def _observer(connection: Any) -> Observer | None:
    return observer_of_run(str(_host_of(connection)))


def _is_in_memory(connection: Any) -> bool:
    return isinstance(getattr(connection.sock, "_inner", connection.sock), MemorySocket)


def _wrap_connect_in_memory(previous: Any) -> Any:
    def connect(connection: Any) -> Any:
        if not _is_simulated(connection):
            return previous(connection)
        of_urllib3 = connection if _is_of_urllib3(connection) else None
        connection.sock = MemorySocket(_scheme_of(connection), _timeout_of(connection), of_urllib3)
        if hasattr(connection, "is_verified"):
            connection.is_verified = True
        return None

    return connect


def _is_simulated(connection: Any) -> bool:
    """Whether the calling code is in a run whose requests httpx sends."""
    observer = _observer(connection)
    return observer is not None and observer.is_simulated


def _timeout_of(connection: Any) -> float | None:
    """Return a connection's timeout in seconds; None for no limit. It has a number, None, or "the default"."""
    timeout: Any = connection.timeout
    return timeout if timeout is None or isinstance(timeout, int | float) else socket.getdefaulttimeout()


def _scheme_of(connection: Any) -> str:
    return "https" if connection.default_port == _TLS_PORT else "http"


def _address(connection: Any, target: str) -> str:
    """Return the URL of a request: its target may have one, for a proxy."""
    if "://" in target.partition("?")[0]:
        return target
    host = _host_of(connection)
    port = getattr(connection, "_tunnel_port", None) or connection.port
    name = f"[{host}]" if ":" in host else host
    place = name if port in (None, connection.default_port) else f"{name}:{port}"
    return f"{_scheme_of(connection)}://{place}{target}"


def _host_of(connection: Any) -> Any:
    # Private, and the only place where a connection through a proxy says where it leads to.
    return getattr(connection, "_tunnel_host", None) or connection.host


# ---- what holds it


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


def _hold_socket(connection: Any, *, is_watched: bool = False) -> None:
    """Bound what a connection sends and receives from now on if its request is held or watched; connect it before.

    is_watched: whether a watcher waits for the response.
    """
    if _hold_on(connection) is None and not is_watched:
        return
    if connection.sock is None and connection.auto_open:
        connection.connect()
    if connection.sock is not None:
        _held_socket(connection)


def _held_socket(connection: Any) -> HeldSocket:
    """Return the connection's socket as a held one; wrap it if it is not yet."""
    if not isinstance(connection.sock, HeldSocket):
        connection.sock = HeldSocket(connection.sock)
    return connection.sock
