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

import httpx

from docmind_lab.core.deadlines import CappedTimeout, Deadline
from docmind_lab.core.holds import current_hold
from docmind_lab.network.attempts import is_sending, sending_scope
from docmind_lab.network.clients.in_memory import MemoryTransport, socket_error
from docmind_lab.network.clients.watching import (
    ResponseWatcher,
    exchange_of,
    hold_in_force,
    is_late,
    limited_exchange,
    observer_of_run,
)
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.replacements import Replacements
from docmind_lab.network.wrapping_up import wrap_up_body


class AiohttpAdapter(Replacements):
    """Hooks on aiohttp's sessions, timeouts, connectors, requests and protocol."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way: weakref.WeakKeyDictionary[Any, ResponseWatcher] = weakref.WeakKeyDictionary()
        # By the task that waits for a connection to send it on.
        self._begun: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()

    def hold(self) -> None:
        """Replace the methods by which aiohttp sends and waits, until `remove`."""
        import aiohttp  # noqa: PLC0415 - only where it is to be held
        from aiohttp.client_proto import ResponseHandler  # noqa: PLC0415 - as above
        from aiohttp.helpers import TimeoutHandle, TimerContext  # noqa: PLC0415 - as above

        self.replace(aiohttp.ClientRequest, "send", self._wrap_send)
        self.replace(ResponseHandler, "data_received", self._wrap_received)
        self.replace(ResponseHandler, "connection_lost", self._wrap_lost)
        self.replace(TimeoutHandle, "__call__", _wrap_expiry)
        self.replace(TimerContext, "__exit__", _wrap_timer_exit)
        # Private, and the one method that all public ones call.
        self.replace(aiohttp.ClientSession, "_request", self._wrap_request)

    def observe(self) -> None:
        """Replace the methods by which aiohttp connects, until `remove`: what it sends and receives is held already."""
        import aiohttp  # noqa: PLC0415 - it may not be installed
        from aiohttp.client_proto import ResponseHandler  # noqa: PLC0415 - as above

        # Private, and the two methods by which a connector gets a connection.
        self.replace(aiohttp.BaseConnector, "_get", _wrap_get)
        for kind in (aiohttp.TCPConnector, aiohttp.UnixConnector):
            self.replace(kind, "_create_connection", functools.partial(_wrap_create, ResponseHandler))

    def _wrap_request(self, previous: Any) -> Any:
        async def _request(session: Any, method: str, url: Any, **options: Any) -> Any:
            held = hold_in_force()
            if held is None:
                return await previous(session, method, url, **options)
            hold, deadline = held
            hold.refuse_if_over()
            to = session._build_url(url)
            exchange = limited_exchange(method, str(to)) if observer_of_run(str(to.host)) is None else None
            if exchange is not None:
                self._begun[asyncio.current_task()] = exchange
            options["timeout"] = _cap_timeout(session, options.get("timeout"), deadline, exchange)
            try:
                return await previous(session, method, url, **options)
            except TimeoutError as error:
                if is_late(hold):
                    raise hold.cut() from error
                if self._begun.get(asyncio.current_task()) is exchange is not None:
                    # The wait for a connection.
                    exchange.note_failure(httpx.ConnectTimeout(str(error)))
                raise

        return _request

    def _wrap_send(self, previous: Any) -> Any:
        # Called for each redirect, with a request of its own.
        async def send(request: Any, connection: Any) -> Any:
            held, wire = hold_in_force(), wire_in_force()
            if held is not None and wire is not None:
                wire.change(request.headers, request.url.raw_host or "", request.url.port, held[1])
            observer = observer_of_run(str(request.url.host))
            if held is not None and not (observer is not None and observer.is_simulated):
                await _wrap_up(request)
            exchange = self._exchange_of(request)
            if exchange is None:
                return await previous(request, connection)
            exchange.note_sent(b"")
            watcher = self._under_way[connection.protocol] = ResponseWatcher(exchange, request.method)
            if exchange.limit_bound is not None:
                _cut_when_over(connection.protocol, watcher)
            with sending_scope():
                return await previous(request, connection)

        return send

    def _exchange_of(self, request: Any) -> Exchange | None:
        """Return the exchange of a request that is sent: of the run that observes it, or of a call with limits."""
        begun = self._begun.pop(asyncio.current_task(), None)
        # What another adapter above this one sends is its request.
        if is_sending() or request.method == "CONNECT":
            return None
        if begun is not None:
            return begun
        observer = observer_of_run(str(request.url.host))
        if observer is not None and observer.is_simulated:
            return None
        if observer is None:
            return limited_exchange(request.method, str(request.url))
        body = getattr(request.body, "_value", request.body)
        return exchange_of(observer, request.method, str(request.url), body if isinstance(body, bytes) else b"")

    def _wrap_received(self, previous: Any) -> Any:
        def data_received(protocol: Any, data: bytes) -> Any:
            watcher = self._under_way.get(protocol)
            if watcher is not None and data:
                watcher.note_data(data)
            return previous(protocol, data)

        return data_received

    def _wrap_lost(self, previous: Any) -> Any:
        def connection_lost(protocol: Any, error: BaseException | None) -> Any:
            watcher = self._under_way.pop(protocol, None)
            if watcher is not None:
                watcher.note_connection_lost(error)
            return previous(protocol, error)

        return connection_lost


async def _wrap_up(request: Any) -> None:
    """Tell a model to end in the body of a request, where its run is wrapped up."""
    from aiohttp import BytesPayload  # noqa: PLC0415 - it is there

    content = await request.body.as_bytes() if isinstance(request.body, BytesPayload) else None
    raw = [(name.encode(), value.encode()) for name, value in request.headers.items()]
    body = wrap_up_body(str(request.url.host), request.url.path, raw, lambda: content)
    if body is not None:
        await request.update_body(body)


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
        # What its own timers bound, in the words of a request of httpx.
        timers = {
            "total": timeout.total,
            "pool": timeout.connect,
            "connect": timeout.sock_connect,
            "read": timeout.sock_read,
        }
        protocol.connection_made(MemoryTransport(scheme, protocol, fail, _take_deadline(timeout.total), timers))
        return protocol

    return _create_connection


def _take_deadline(total: float | None) -> Deadline | None:
    """Return the deadline of a request that a connection in memory is to end by, in place of the session's timer."""
    if not isinstance(total, CappedTimeout):
        return None
    total.is_taken = True
    return total.deadline


def _fail(protocol: Any, error: BaseException) -> None:
    """Raise an error where the response of a protocol of aiohttp is awaited, or its body; a timeout as aiohttp's."""
    from aiohttp import SocketTimeoutError  # noqa: PLC0415 - it is there

    if isinstance(error, TimeoutError):
        error = SocketTimeoutError(str(error))
    # Private: the protocol's own ways of failing turn the error into one of aiohttp's.
    payload = protocol._payload
    protocol.set_exception(error)
    if payload is not None:
        payload.set_exception(error)


# ---- what holds it


def _cap_timeout(session: Any, own: Any, deadline: Deadline, exchange: Exchange | None) -> Any:
    """Return the timeout of a request with its total capped by the deadline, and its connecting by limits of its call.

    own: the caller's own. exchange: of a call with limits; None for others.
    """
    from aiohttp import ClientTimeout  # noqa: PLC0415 - it is there

    if isinstance(own, int | float):
        own = ClientTimeout(total=own)
    timeout = own if isinstance(own, ClientTimeout) else session.timeout
    if isinstance(timeout.total, CappedTimeout):
        return timeout
    bound = None if exchange is None else exchange.limit_bound
    return ClientTimeout(
        total=CappedTimeout.of(timeout.total or None, deadline),
        connect=timeout.connect if bound is None else bound.cap(timeout.connect),
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


def _cut_when_over(protocol: Any, watcher: ResponseWatcher) -> None:
    """Fail a request of a protocol once a limit of its call is over, as aiohttp fails it by its own read timeout."""
    loop, exchange = asyncio.get_running_loop(), watcher.exchange

    def look() -> None:
        bound = exchange.limit_bound
        if watcher.is_over or bound is None:
            return
        if exchange.limit_over:
            error = httpx.ReadTimeout("a limit of the call is over")
            watcher.note_connection_lost(error)
            _fail(protocol, socket_error(error))
        elif bound.remaining() > 0:
            loop.call_later(bound.remaining(), look)

    look()
