"""aiohttp: observed in runs of a user's graph, held in production.

It has a timeout for a whole request, body included; in production that is given what is left.
"""

from __future__ import annotations

import asyncio
import functools
import math
import weakref
from collections.abc import Callable
from typing import Any

import h11
import httpx

from docmind_lab.core.deadlines import CappedTimeout
from docmind_lab.network.carried import CarriedTransport
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange
from docmind_lab.network.library_watch import Find, LibraryWatch, exchange_of, hold_in_force, is_late, note_head
from docmind_lab.network.replacements import Replacements


class AiohttpHooks:
    """Hooks on aiohttp's connector, requests and protocol."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._under_way: weakref.WeakKeyDictionary[Any, _NotedResponse] = weakref.WeakKeyDictionary()

    def install(self, hooks: Replacements) -> None:
        """Replace aiohttp's methods until `hooks` are removed."""
        import aiohttp  # noqa: PLC0415 - it may not be installed
        from aiohttp.client_proto import ResponseHandler  # noqa: PLC0415 - as above

        # Private, and the two methods by which a connector gets a connection.
        hooks.replace(aiohttp.BaseConnector, "_get", self._wrap_get)
        for kind in (aiohttp.TCPConnector, aiohttp.UnixConnector):
            hooks.replace(kind, "_create_connection", self._wrap_create(ResponseHandler))
        hooks.replace(aiohttp.ClientRequest, "send", self._wrap_send)
        hooks.replace(ResponseHandler, "data_received", self._wrap_received)
        hooks.replace(ResponseHandler, "connection_lost", self._wrap_lost)

    def _wrap_get(self, previous: Any) -> Any:
        async def _get(connector: Any, key: Any, *arguments: Any, **options: Any) -> Any:
            watch = self._find(str(key.host))
            # What is in the pool was made before the run, and leads to the real host.
            if watch is not None and watch.carries:
                return None
            return await previous(connector, key, *arguments, **options)

        return _get

    def _wrap_create(self, handler: Any) -> Callable[[Any], Any]:
        def make(previous: Any) -> Any:
            async def _create_connection(connector: Any, request: Any, *arguments: Any, **options: Any) -> Any:
                watch = self._find(str(request.url.host))
                if watch is None or not watch.carries:
                    return await previous(connector, request, *arguments, **options)
                protocol = handler(asyncio.get_running_loop())
                scheme = {"ws": "http", "wss": "https"}.get(request.url.scheme, request.url.scheme)
                protocol.connection_made(CarriedTransport(scheme, protocol, lambda error: _fail(protocol, error)))
                return protocol

            return _create_connection

        return make

    def _wrap_send(self, previous: Any) -> Any:
        async def send(request: Any, connection: Any) -> Any:
            watch = self._find(str(request.url.host))
            if watch is None or watch.carries or request.method == "CONNECT":
                return await previous(request, connection)
            body = getattr(request.body, "_value", request.body)
            exchange = exchange_of(watch, request.method, str(request.url), body if isinstance(body, bytes) else b"")
            exchange.note_sent(b"")
            protocol = connection.protocol
            noted = self._under_way[protocol] = _NotedResponse(exchange, request.method)
            if exchange.deadline is not None:
                left_s = exchange.deadline.cap(None)
                noted.limit = asyncio.get_running_loop().call_later(left_s, self._cut, protocol, watch)
            return await previous(request, connection)

        return send

    def _cut(self, protocol: Any, watch: LibraryWatch) -> None:
        noted = self._under_way.pop(protocol, None)
        if noted is not None:
            try:
                noted.exchange.note_failure(httpx.ReadTimeout("the deadline is over"))
                error: BaseException = watch.cut(noted.exchange.attempt, noted.exchange.deadline)
            except BaseException as cut:  # noqa: BLE001 - it is raised where the response is awaited
                error = cut
            _fail(protocol, error)

    def _wrap_received(self, previous: Any) -> Any:
        def data_received(protocol: Any, data: bytes) -> Any:
            noted = self._under_way.get(protocol)
            if noted is not None and data and noted.received(data):
                del self._under_way[protocol]
            return previous(protocol, data)

        return data_received

    def _wrap_lost(self, previous: Any) -> Any:
        def connection_lost(protocol: Any, error: BaseException | None) -> Any:
            noted = self._under_way.pop(protocol, None)
            if noted is not None:
                noted.lost(error)
            return previous(protocol, error)

        return connection_lost


def _fail(protocol: Any, error: BaseException) -> None:
    """Raise an error where the response of a protocol of aiohttp is awaited, or its body."""
    # Private: the protocol's own ways of failing turn the error into one of aiohttp's.
    payload = protocol._payload
    protocol.set_exception(error)
    if payload is not None:
        payload.set_exception(error)


class _NotedResponse:
    """The attempt of a request that aiohttp sends itself, and the response so far. method: of the request."""

    def __init__(self, exchange: Exchange, method: str) -> None:
        self.exchange = exchange
        self.limit: asyncio.TimerHandle | None = None
        self._h11 = h11.Connection(h11.CLIENT)
        self._h11.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        self._h11.send(h11.EndOfMessage())

    def received(self, data: bytes) -> bool:
        """Note bytes of the response; return whether it is over, or not to be followed."""
        try:
            self._h11.receive_data(data)
            return self._note_events()
        except h11.RemoteProtocolError as error:
            self._end(functools.partial(self.exchange.note_failure, error))
            return True

    def _note_events(self) -> bool:
        while (event := self._h11.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Response):
                note_head(self.exchange, event.status_code, event.headers)
            elif isinstance(event, h11.Data):
                self.exchange.note_body(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._end(self.exchange.complete)
                return True
        return False

    def lost(self, error: BaseException | None) -> None:
        """Note that the connection is closed, by an error or without one."""
        if error is not None:
            self._end(functools.partial(self.exchange.note_failure, error))
        elif not self.received(b""):
            self._end(self.exchange.note_closed)

    def _end(self, note: Callable[[], None]) -> None:
        if self.limit is not None:
            self.limit.cancel()
        note()


# ---- in production


def hold_aiohttp() -> Replacements:
    """Replace the method by which aiohttp sends every request, and return what puts it back."""
    import aiohttp  # noqa: PLC0415 - only where it is to be held
    from aiohttp.helpers import TimeoutHandle  # noqa: PLC0415 - as above

    made = Replacements()

    def held_request(previous: Any) -> Any:
        async def _request(session: Any, method: str, url: Any, **options: Any) -> Any:
            held = hold_in_force()
            if held is None:
                return await previous(session, method, url, **options)
            hold, deadline = held
            hold.refuse_if_over()
            given = options.get("timeout")
            if isinstance(given, int | float):
                given = aiohttp.ClientTimeout(total=given)
            timeout = given if isinstance(given, aiohttp.ClientTimeout) else session.timeout
            options["timeout"] = aiohttp.ClientTimeout(
                total=CappedTimeout.of(timeout.total or None, deadline),
                connect=timeout.connect,
                sock_read=timeout.sock_read,
                sock_connect=timeout.sock_connect,
                # With a threshold aiohttp rounds longer timeouts up to whole seconds.
                ceil_threshold=math.inf,
            )
            try:
                return await previous(session, method, url, **options)
            except TimeoutError as error:
                if is_late(hold):
                    raise hold.cut() from error
                raise

        return _request

    def held_expiry(previous: Any) -> Any:
        # Called when the time of a request is over.
        def expire(handle: Any) -> None:
            allowed = handle._timeout
            if not isinstance(allowed, CappedTimeout) or not allowed.is_lifted:
                previous(handle)
                return
            rest_s = allowed.rest(allowed)
            if rest_s is not None:
                handle._timeout = rest_s
                handle._loop.call_later(rest_s, expire, handle)

        return expire

    def held_send(previous: Any) -> Any:
        # Called for each redirect, with a request of its own.
        async def send(request: Any, connection: Any) -> Any:
            held, wire = hold_in_force(), wire_in_force()
            if held is not None and wire is not None:
                wire.change(request.headers, request.url.raw_host or "", request.url.port, held[1])
            return await previous(request, connection)

        return send

    made.replace(aiohttp.ClientRequest, "send", held_send)
    made.replace(TimeoutHandle, "__call__", held_expiry)
    # Private, and the one method that all public ones call.
    made.replace(aiohttp.ClientSession, "_request", held_request)
    return made
