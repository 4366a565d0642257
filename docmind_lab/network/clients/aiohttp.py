"""aiohttp: observed in runs of a user's graph, and held.

It has a timeout for a whole request, body included, which is given what is left. Where services are simulated, a
connection has no socket, and httpx sends its requests.
"""

from __future__ import annotations

import asyncio
import functools
import math
import weakref
from typing import Any

from docmind_lab.core.deadlines import CappedTimeout, Deadline
from docmind_lab.core.holds import current_hold
from docmind_lab.network.attempts import is_sending, sending_scope
from docmind_lab.network.clients.in_memory import MemoryTransport
from docmind_lab.network.clients.watching import NotedResponse, exchange_of, hold_in_force, is_late, observer_of_run
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.replacements import Replacements


class AiohttpAdapter(Replacements):
    """Hooks on aiohttp's sessions, timeouts, connectors, requests and protocol."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: weakref.WeakKeyDictionary[Any, NotedResponse] = weakref.WeakKeyDictionary()

    def hold(self) -> None:
        """Replace the methods by which aiohttp sends and waits, until `remove`."""
        import aiohttp  # noqa: PLC0415 - only where it is to be held
        from aiohttp.helpers import TimeoutHandle, TimerContext  # noqa: PLC0415 - as above

        self.replace(aiohttp.ClientRequest, "send", _wrap_send)
        self.replace(TimeoutHandle, "__call__", _wrap_expiry)
        self.replace(TimerContext, "__exit__", _wrap_timer_exit)
        # Private, and the one method that all public ones call.
        self.replace(aiohttp.ClientSession, "_request", _wrap_request)

    def observe(self) -> None:
        """Replace the methods by which aiohttp connects, sends and receives, until `remove`."""
        import aiohttp  # noqa: PLC0415 - it may not be installed
        from aiohttp.client_proto import ResponseHandler  # noqa: PLC0415 - as above

        # Private, and the two methods by which a connector gets a connection.
        self.replace(aiohttp.BaseConnector, "_get", _wrap_get)
        for kind in (aiohttp.TCPConnector, aiohttp.UnixConnector):
            self.replace(kind, "_create_connection", functools.partial(_wrap_create, ResponseHandler))
        self.replace(aiohttp.ClientRequest, "send", self._wrap_observed_send)
        self.replace(ResponseHandler, "data_received", self._wrap_received)
        self.replace(ResponseHandler, "connection_lost", self._wrap_lost)

    def _wrap_observed_send(self, previous: Any) -> Any:
        async def send(request: Any, connection: Any) -> Any:
            observer = observer_of_run(str(request.url.host))
            if observer is None or observer.is_simulated or is_sending() or request.method == "CONNECT":
                return await previous(request, connection)
            body = getattr(request.body, "_value", request.body)
            exchange = exchange_of(observer, request.method, str(request.url), body if isinstance(body, bytes) else b"")
            exchange.note_sent(b"")
            self._under_way[connection.protocol] = NotedResponse(exchange, request.method)
            with sending_scope():
                return await previous(request, connection)

        return send

    def _wrap_received(self, previous: Any) -> Any:
        def data_received(protocol: Any, data: bytes) -> Any:
            noted = self._under_way.get(protocol)
            if noted is not None and data:
                noted.received(data)
            return previous(protocol, data)

        return data_received

    def _wrap_lost(self, previous: Any) -> Any:
        def connection_lost(protocol: Any, error: BaseException | None) -> Any:
            noted = self._under_way.pop(protocol, None)
            if noted is not None:
                noted.lost(error)
            return previous(protocol, error)

        return connection_lost


def _wrap_get(previous: Any) -> Any:
    async def _get(connector: Any, key: Any, *arguments: Any, **options: Any) -> Any:
        observer = observer_of_run(str(key.host))
        # What is in the pool was made before the run, and leads to the real host.
        if observer is not None and observer.is_simulated:
            return None
        return await previous(connector, key, *arguments, **options)

    return _get


def _wrap_create(handler: Any, previous: Any) -> Any:
    async def _create_connection(connector: Any, request: Any, traces: Any, timeout: Any) -> Any:
        observer = observer_of_run(str(request.url.host))
        if observer is None or not observer.is_simulated:
            return await previous(connector, request, traces, timeout)
        protocol = handler(asyncio.get_running_loop())
        scheme = {"ws": "http", "wss": "https"}.get(request.url.scheme, request.url.scheme)
        fail = functools.partial(_fail, protocol)
        protocol.connection_made(MemoryTransport(scheme, protocol, fail, _take_deadline(timeout.total)))
        return protocol

    return _create_connection


def _take_deadline(total: float | None) -> Deadline | None:
    """Return the deadline of a request that a connection in memory is to end by, in place of the session's timer."""
    if not isinstance(total, CappedTimeout):
        return None
    total.is_taken = True
    return total.deadline


def _fail(protocol: Any, error: BaseException) -> None:
    """Raise an error where the response of a protocol of aiohttp is awaited, or its body."""
    # Private: the protocol's own ways of failing turn the error into one of aiohttp's.
    payload = protocol._payload
    protocol.set_exception(error)
    if payload is not None:
        payload.set_exception(error)


# ---- what holds it


def _wrap_request(previous: Any) -> Any:
    async def _request(session: Any, method: str, url: Any, **options: Any) -> Any:
        held = hold_in_force()
        if held is None:
            return await previous(session, method, url, **options)
        hold, deadline = held
        hold.refuse_if_over()
        options["timeout"] = _capped(session, options.get("timeout"), deadline)
        try:
            return await previous(session, method, url, **options)
        except TimeoutError as error:
            if is_late(hold):
                raise hold.cut() from error
            raise

    return _request


def _capped(session: Any, own: Any, deadline: Deadline) -> Any:
    """Return the timeout of a request with its total capped by the deadline. own: the caller's own."""
    from aiohttp import ClientTimeout  # noqa: PLC0415 - it is there

    if isinstance(own, int | float):
        own = ClientTimeout(total=own)
    timeout = own if isinstance(own, ClientTimeout) else session.timeout
    if isinstance(timeout.total, CappedTimeout):
        return timeout
    return ClientTimeout(
        total=CappedTimeout.of(timeout.total or None, deadline),
        connect=timeout.connect,
        sock_read=timeout.sock_read,
        sock_connect=timeout.sock_connect,
        # With a threshold aiohttp rounds longer timeouts up to whole seconds.
        ceil_threshold=math.inf,
    )


def _wrap_expiry(previous: Any) -> Any:
    # Called when the time of a request is over.
    def expire(handle: Any) -> None:
        allowed = handle._timeout
        if isinstance(allowed, CappedTimeout) and allowed.is_lifted:
            rest_s = allowed.rest(allowed)
            if rest_s is not None:
                handle._timeout = rest_s
                handle._loop.call_later(rest_s, expire, handle)
        elif not (isinstance(allowed, CappedTimeout) and allowed.is_taken and allowed.deadline.ends_a_wait):
            previous(handle)

    return expire


def _wrap_timer_exit(previous: Any) -> Any:
    # Around each wait of a request, also of its body.
    def leave(timer: Any, *raised: Any) -> Any:
        try:
            return previous(timer, *raised)
        except TimeoutError as error:
            hold = current_hold()
            if hold is not None and is_late(hold):
                raise hold.cut() from error
            raise

    return leave


def _wrap_send(previous: Any) -> Any:
    # Called for each redirect, with a request of its own.
    async def send(request: Any, connection: Any) -> Any:
        held, wire = hold_in_force(), wire_in_force()
        if held is not None and wire is not None:
            wire.change(request.headers, request.url.raw_host or "", request.url.port, held[1])
        return await previous(request, connection)

    return send
