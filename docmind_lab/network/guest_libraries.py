"""Observes requests of http.client (and so of urllib3, requests and urllib) and of aiohttp in runs of a user's graph.

Where a run's services are simulated, httpx carries the request (`carried.py`), so that it is redirected, recorded and
held as one of httpx's. Elsewhere the library sends it itself, and what is seen of it is its attempt: when it began and
ended, its status and its body.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import http.client
import importlib.util
import io
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import h11
import httpx

from docmind_lab.core.deadlines import deadline_scope
from docmind_lab.network.attempts import call_scope
from docmind_lab.network.carried import CarriedSocket, CarriedTransport, default_timeout_s, socket_error
from docmind_lab.network.exchange import Exchange, admit_all
from docmind_lab.network.guests import Replacements, Watch

_TLS_PORT = 443


class LibraryWatch(Watch, Protocol):
    """A watch that says whether requests are carried. carries: whether what answers them is simulated."""

    @property
    def carries(self) -> bool:
        """Whether httpx carries the requests of other libraries."""
        ...


Find = Callable[[], LibraryWatch | None]


def watch_libraries(hooks: Replacements, find: Find) -> None:
    """Replace the methods by which http.client, urllib3 and aiohttp connect and send, until `hooks` are removed.

    Args:
        hooks: What puts them back.
        find: Called at every request.
    """
    _HttpClientHooks(find).install(hooks)
    # Imported here, since a node may import it in a run, when its methods are looked for no more.
    if importlib.util.find_spec("aiohttp") is not None:
        _AiohttpHooks(find).install(hooks)


def _exchange(watch: Watch, method: str, url: str, body: bytes = b"") -> Exchange:
    """Return the exchange of a request that its library sends itself. Raises: what the watch raises."""
    passage = watch.passage(method, url, False)
    request = httpx.Request(method, url, content=body)
    with call_scope(passage.call), deadline_scope(passage.deadline):
        return Exchange(request, admit_all, watch.cut, read_timeout_s=passage.read_timeout_s)


@contextlib.contextmanager
def _noted(exchange: Exchange) -> Any:
    """Note what an operation of another library raises as httpx's error of the same meaning."""
    try:
        yield
    except TimeoutError as error:
        exchange.note_failure(httpx.ReadTimeout(str(error)))
        raise
    except BaseException as error:
        exchange.note_failure(error)
        raise


class _HttpClientHooks:
    """Hooks on http.client's connections and on urllib3's, which are made from them."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._under_way: weakref.WeakKeyDictionary[Any, Exchange] = weakref.WeakKeyDictionary()

    def install(self, hooks: Replacements) -> None:
        kinds: list[type] = [http.client.HTTPConnection, http.client.HTTPSConnection]
        if importlib.util.find_spec("urllib3") is not None:
            from urllib3.connection import HTTPConnection, HTTPSConnection  # noqa: PLC0415 - it may not be installed

            kinds += [HTTPConnection, HTTPSConnection]
        for kind in kinds:
            hooks.replace(kind, "connect", self._wrap_connect)
        hooks.replace(http.client.HTTPConnection, "putrequest", self._wrap_putrequest)
        hooks.replace(http.client.HTTPConnection, "send", self._wrap_send)
        hooks.replace(http.client.HTTPConnection, "getresponse", self._wrap_getresponse)

    def _carrying(self) -> bool:
        watch = self._find()
        return watch is not None and watch.carries

    def _wrap_connect(self, previous: Any) -> Any:
        def connect(connection: Any) -> Any:
            if not self._carrying():
                return previous(connection)
            scheme = "https" if connection.default_port == _TLS_PORT else "http"
            connection.sock = CarriedSocket(scheme, default_timeout_s(connection.timeout), _translator(connection))
            if hasattr(connection, "is_verified"):
                connection.is_verified = True
            return None

        return connect

    def _wrap_putrequest(self, previous: Any) -> Any:
        def putrequest(connection: Any, method: str, url: str, *arguments: Any, **options: Any) -> Any:
            watch = self._find()
            if watch is not None and watch.carries:
                # Made before the run, it leads to the real host.
                if connection.sock is not None and not isinstance(connection.sock, CarriedSocket):
                    connection.close()
            elif watch is not None:
                self._under_way[connection] = _exchange(watch, method, _address(connection, url))
            elif isinstance(connection.sock, CarriedSocket):
                connection.close()
            return previous(connection, method, url, *arguments, **options)

        return putrequest

    def _wrap_send(self, previous: Any) -> Any:
        def send(connection: Any, data: Any) -> Any:
            exchange = self._under_way.get(connection)
            if exchange is None:
                return previous(connection, data)
            exchange.note_sent(data if isinstance(data, bytes) else b"")
            with _noted(exchange):
                _bound(connection.sock, exchange)
                return previous(connection, data)

        return send

    def _wrap_getresponse(self, previous: Any) -> Any:
        def getresponse(connection: Any) -> Any:
            exchange = self._under_way.pop(connection, None)
            if exchange is None:
                return previous(connection)
            sock = connection.sock
            with _noted(exchange):
                _bound(sock, exchange)
                response = previous(connection)
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.getheaders()]
            _note_response(exchange, response.status, raw)
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
    # Private, and the only place where a connection through a proxy says where it leads to.
    host = getattr(connection, "_tunnel_host", None) or connection.host
    port = getattr(connection, "_tunnel_port", None) or connection.port
    scheme = "https" if connection.default_port == _TLS_PORT else "http"
    shown = f"[{host}]" if ":" in host else host
    place = shown if port in (None, connection.default_port) else f"{shown}:{port}"
    return f"{scheme}://{place}{target}"


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

    def __init__(self, inner: Any, sock: Any, exchange: Exchange, response: Any) -> None:
        self._inner, self._socket, self._exchange = inner, sock, exchange
        self._chunked, self._response = bool(response.chunked), weakref.ref(response)

    def _pass(self, read: Callable[..., Any], *arguments: Any) -> Any:
        with _noted(self._exchange):
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

    _is_at_end = False

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


class _AiohttpHooks:
    """Hooks on aiohttp's connector, requests and protocol."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._under_way: weakref.WeakKeyDictionary[Any, _NotedResponse] = weakref.WeakKeyDictionary()

    def install(self, hooks: Replacements) -> None:
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
        async def _get(connector: Any, *arguments: Any, **options: Any) -> Any:
            watch = self._find()
            # What is in the pool was made before the run, and leads to the real host.
            if watch is not None and watch.carries:
                return None
            return await previous(connector, *arguments, **options)

        return _get

    def _wrap_create(self, handler: Any) -> Callable[[Any], Any]:
        def make(previous: Any) -> Any:
            async def _create_connection(connector: Any, request: Any, *arguments: Any, **options: Any) -> Any:
                watch = self._find()
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
            watch = self._find()
            if watch is None or watch.carries or request.method == "CONNECT":
                return await previous(request, connection)
            body = getattr(request.body, "_value", request.body)
            exchange = _exchange(watch, request.method, str(request.url), body if isinstance(body, bytes) else b"")
            exchange.note_sent(b"")
            protocol = connection.protocol
            noted = self._under_way[protocol] = _NotedResponse(exchange, request.method)
            if exchange.deadline is not None:
                left_s = exchange.deadline.cap(None)
                noted.limit = asyncio.get_running_loop().call_later(left_s, self._cut, protocol, watch)
            return await previous(request, connection)

        return send

    def _cut(self, protocol: Any, watch: Watch) -> None:
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
                _note_response(self.exchange, event.status_code, event.headers)
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


def _note_response(exchange: Exchange, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
    if exchange.attempt is not None:
        exchange.attempt.note_first_byte()
    exchange.note_response(status, [(bytes(name), bytes(value)) for name, value in headers])
