"""HTTP/1.1 connections without a socket: what another library writes into one is sent by httpx, and answered by it.

    connection.sock = MemorySocket("https", 30.0, ...)      # of http.client, and so of urllib3 and requests
    protocol.connection_made(MemoryTransport("https", protocol, ...))             # of aiohttp

A library's own pools, retries, redirects and decoding stay; the request itself is one of httpx's, which is recorded as
those are. It is held to the deadline that the library's own adapter holds the connection to, and to no other. A
connection serves one request, and its answer says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
from collections.abc import AsyncIterable, Callable, Generator, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import h11
import httpx

from docmind_lab.core.deadlines import CappedTimeout, Deadline, deadline_scope
from docmind_lab.network.exchange import TIMERS_OF_CLIENT

# Of a request or an answer; the URL of a search may be long.
_LONGEST_HEAD = 1 << 20
# What holds for one connection, and not for the next. An answer in chunks stays one.
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"upgrade", b"expect"})
_RESET = 104

# Without certificates, whose loading takes longer than a request: what is sent goes to services on loopback.
NO_CERTIFICATES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For requests that services on loopback answer."""


class HttpWire:
    """The server's end of a connection: bytes of a request in, bytes of its response out.

    scheme: "http" or "https", as the client would have connected.
    """

    def __init__(self, scheme: str) -> None:
        self._scheme, self._body = scheme, bytearray()
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        self._request: h11.Request | None = None
        # Bytes of the body still to come, where the headers say how many.
        self._left: int | None = None
        self._withheld = b""

    @property
    def wants_continue(self) -> bool:
        """Whether the client waits for a sign before it sends the body."""
        return self._h11.they_are_waiting_for_100_continue

    def continues(self) -> bytes:
        """Return the sign that the body may be sent."""
        return self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b""

    def feed(self, data: bytes) -> bool:
        """Take bytes of the request; return whether it is there to its end. Raises: ConnectionResetError."""
        try:
            self._h11.receive_data(data)
            while (event := self._h11.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Request):
                    self._request = event
                elif isinstance(event, h11.Data):
                    self._body += event.data
                elif isinstance(event, h11.EndOfMessage):
                    return True
        except h11.RemoteProtocolError as error:
            raise ConnectionResetError(_RESET, f"the request is not HTTP/1.1: {error}") from error
        return False

    def request(self, timeout_s: float | None) -> httpx.Request:
        """Return the request for httpx. timeout_s: of each wait; None for none."""
        assert self._request is not None, "the request is there to its end"
        sent = self._request
        target = sent.target.decode("latin-1")
        host = next((value.decode("latin-1") for name, value in sent.headers if name == b"host"), "")
        url = target if "://" in target.partition("?")[0] else f"{self._scheme}://{host}{target}"
        dropped = _OF_THE_CONNECTION | {b"transfer-encoding"}
        headers = [(name, value) for name, value in sent.headers.raw_items() if name.lower() not in dropped]
        waits = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
        extensions = {} if timeout_s is None else {"timeout": waits}
        return httpx.Request(
            sent.method.decode("ascii"), url, headers=headers, content=bytes(self._body), extensions=extensions
        )

    def head(self, response: httpx.Response) -> bytes:
        """Return the bytes of the status line and the headers."""
        raw = response.headers.raw
        rest = [(name, value) for name, value in raw if name.lower() not in _OF_THE_CONNECTION]
        assert self._request is not None, "what is answered was asked"
        if response.status_code in (204, 304) or self._request.method == b"HEAD":
            self._left = 0
        else:
            length = response.headers.get("content-length", "")
            self._left = int(length) if length.isdecimal() else None
        reason = response.extensions.get("reason_phrase", b"")
        head = h11.Response(status_code=response.status_code, headers=[*rest, (b"connection", b"close")], reason=reason)
        return self._unless_last(self._h11.send(head) or b"")

    def data(self, part: bytes) -> bytes:
        """Return the bytes of a part of the body."""
        if self._left is not None:
            self._left -= len(part)
        return self._unless_last(self._h11.send(h11.Data(data=part)) or b"")

    def end(self) -> bytes:
        """Return the last bytes of the response."""
        return self._withheld + (self._h11.send(h11.EndOfMessage()) or b"")

    def _unless_last(self, data: bytes) -> bytes:
        # A client that has the last byte leaves. The request ends well only if its end has been read before.
        if self._left is None or self._left > 0:
            return data
        self._withheld += data
        return b""


class MemorySocket:
    """A blocking socket for one request of http.client.

    timeout_s: of each wait; None for no limit. of_urllib3: urllib3's connection that it is the socket of, if it is.
    """

    def __init__(self, scheme: str, timeout_s: float | None, of_urllib3: Any = None) -> None:
        self._wire, self._timeout_s, self._of_urllib3 = HttpWire(scheme), timeout_s, of_urllib3

    def sendall(self, data: Any) -> None:
        """Take bytes of the request."""
        self._wire.feed(bytes(data))

    def settimeout(self, timeout_s: float | None) -> None:
        """Set the limit of each wait of a request that is not sent yet, in seconds; a capped one has a deadline."""
        self._timeout_s = timeout_s

    def gettimeout(self) -> float | None:
        """Return the limit of each wait, in seconds."""
        return self._timeout_s

    def close(self) -> None:
        """Do nothing: the response is closed by itself, as with any socket that a file is open of."""

    def makefile(self, mode: str = "rb", buffering: int | None = None, **_: Any) -> Any:
        """Return the response as a file; its first read sends the request."""
        file = _ResponseFile(self._response())
        return file if buffering == 0 else io.BufferedReader(file)

    def _response(self) -> Generator[bytes, None, None]:
        wire, sender = self._wire, httpx.HTTPTransport(verify=NO_CERTIFICATES)
        timeout_s, deadline = self._timeout_s, None
        if isinstance(timeout_s, CappedTimeout):
            deadline, timeout_s = timeout_s.deadline, timeout_s.own_s
        with contextlib.closing(sender):
            try:
                with deadline_scope(deadline, inherits=False):
                    response = sender.handle_request(wire.request(timeout_s))
                with contextlib.closing(response):
                    yield wire.head(response)
                    assert isinstance(response.stream, Iterable), "a sync request has a sync response"
                    for part in response.stream:
                        yield wire.data(part)
                yield wire.end()
            except httpx.HTTPError as error:
                raise (socket_error(error) if self._of_urllib3 is None else self._error_of_urllib3(error)) from error

    def _error_of_urllib3(self, error: httpx.HTTPError) -> Exception:
        """Return urllib3's error for one of httpx: it tells failed connections from failed reads."""
        from urllib3.exceptions import ConnectTimeoutError, NewConnectionError  # noqa: PLC0415 - it is there

        if isinstance(error, httpx.ConnectTimeout):
            return ConnectTimeoutError(self._of_urllib3, "the connection timed out")
        if isinstance(error, httpx.ConnectError):
            return NewConnectionError(self._of_urllib3, f"cannot connect: {error}")
        return socket_error(error)


class _ResponseFile(io.RawIOBase):
    """The bytes of a response as a file."""

    def __init__(self, parts: Generator[bytes, None, None]) -> None:
        self._parts, self._rest = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            try:
                self._rest = next(self._parts)
            except StopIteration:
                return 0
        count = min(len(buffer), len(self._rest))
        buffer[:count], self._rest = self._rest[:count], self._rest[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._parts.close()
        super().close()


def socket_error(error: Exception) -> OSError:
    """Return what a socket raises for an error of httpx."""
    if isinstance(error, httpx.TimeoutException):
        return TimeoutError("timed out")
    if isinstance(error, httpx.ConnectError):
        return ConnectionRefusedError(f"cannot connect: {error}")
    return ConnectionResetError(_RESET, f"the connection was closed: {error}")


class MemoryTransport(asyncio.Transport):
    """A connection of an event loop for one request. scheme: "http" or "https". protocol: aiohttp's, or any other's.

    fail: called with an error that ends the run, or with a timeout, which a protocol would turn into another one of its
    own. deadline: of its request; None for none. timers: the client's own timeouts, which it enforces itself, by what
    they bound.
    """

    def __init__(
        self,
        scheme: str,
        protocol: asyncio.Protocol,
        fail: Callable[[BaseException], None],
        deadline: Deadline | None = None,
        timers: Mapping[str, float | None] = MappingProxyType({}),
    ) -> None:
        super().__init__()
        self._timers = timers
        self._wire, self._protocol, self._fail, self._deadline = HttpWire(scheme), protocol, fail, deadline
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[OSError | None] | None = None
        self._may_feed = asyncio.Event()
        self._may_feed.set()
        self._is_closing = self._is_lost = False

    def write(self, data: Any) -> None:
        """Take bytes of the request; its last one sends it, in the context of the caller."""
        if self._is_closing:
            return
        try:
            is_whole = self._wire.feed(bytes(data))
        except ConnectionResetError as error:
            self._lose(error)
            return
        if is_whole:
            self._task = self._loop.create_task(self._exchange())
            self._task.add_done_callback(lambda task: self._lose(None if task.cancelled() else task.result()))
        elif self._wire.wants_continue:
            self._protocol.data_received(self._wire.continues())

    async def _exchange(self) -> OSError | None:
        """Send the request and feed its response; return the error with which the connection was lost."""
        wire, sender = self._wire, httpx.AsyncHTTPTransport(verify=NO_CERTIFICATES)
        try:
            async with sender:
                with deadline_scope(self._deadline, inherits=False):
                    request = wire.request(None)
                    request.extensions[TIMERS_OF_CLIENT] = self._timers
                    response = await sender.handle_async_request(request)
                async with contextlib.aclosing(response):
                    await self._feed(wire.head(response))
                    assert isinstance(response.stream, AsyncIterable), "an async request has an async response"
                    async for part in response.stream:
                        await self._feed(wire.data(part))
            await self._feed(wire.end())
            await self._may_feed.wait()
        except httpx.RemoteProtocolError:
            pass  # a server that leaves without a word closes the connection, which is no error of a socket
        except httpx.TimeoutException as error:
            self._fail(socket_error(error))
        except httpx.HTTPError as error:
            return socket_error(error)
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # what ends a run is raised where its response is awaited
            if not self._loop.is_running():
                raise  # the run is over and closes what it left: no error of a request
            self._fail(error)
        return None

    async def _feed(self, data: bytes) -> None:
        await self._may_feed.wait()
        if data and not self._is_closing:
            self._protocol.data_received(data)

    def _lose(self, error: OSError | None) -> None:
        self._is_closing = True
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(error)

    def close(self) -> None:
        """Leave: a request under way is cut."""
        self._is_closing = True
        if self._task is not None and not self._task.done() and self._task is not asyncio.current_task(self._loop):
            self._task.cancel()
        elif self._task is None:
            self._loop.call_soon(self._lose, None)

    def abort(self) -> None:
        """Leave at once."""
        self.close()

    def is_closing(self) -> bool:
        """Whether the connection is closed, or about to be."""
        return self._is_closing

    def pause_reading(self) -> None:
        """Hold the response back."""
        self._may_feed.clear()

    def resume_reading(self) -> None:
        """Let the response go on."""
        self._may_feed.set()

    def get_write_buffer_size(self) -> int:
        """Return 0: what is written is taken at once."""
        return 0
