"""httpx and httpx2: observed in runs of a user's graph, and held.

    adapter = HttpxAdapter()
    adapter.hold()
    ...                  # requests through httpx and httpx2, whoever built the client, are those of whoever observes
    adapter.remove()

The public methods of the two libraries' transports, of httpcore's backends and of its pools are replaced, and put back.
Where nobody observes and nothing holds, each calls the original with its own arguments. A connection that was made
before, or where nothing is held, is not used by a held request: nobody would hold its reads to the deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2

from docmind_lab.core.deadlines import deadline_scope
from docmind_lab.network.attempts import call_scope, current_call, is_sending, sending_scope
from docmind_lab.network.clients.watching import Observer, as_work, held_code, observer_of_run
from docmind_lab.network.deadline_headers import wire_in_force
from docmind_lab.network.exchange import Exchange, admit_all
from docmind_lab.network.replacements import Replacements
from docmind_lab.network.streams import AsyncBackend, SyncBackend
from docmind_lab.network.transports import AsyncBody, SyncBody
from docmind_lab.network.wrapping_up import wrap_up_request

# How the openai and anthropic clients count the tries of one call.
_RETRY_COUNT = b"x-stainless-retry-count"
# Meant for the endpoint that the client was built for, and for no other.
_OF_THE_ENDPOINT = frozenset({b"host", b"authorization", b"api-key", b"x-api-key", b"cookie"})


class HttpxAdapter(Replacements):
    """Hooks on httpx and httpx2, active between `hold` and `remove`.

    Args:
        holds_all: Whether every connection is made so that it can be held, whoever connects it. Then held requests and
            others share connections, as they would without hooks.
    """

    def __init__(self, *, holds_all: bool = False) -> None:
        super().__init__()
        self._holds_all = holds_all
        # Connections made for held requests → the event loop that owns each; None for a blocking one.
        self._owners: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        _all_adapters.add(self)

    def hold(self) -> None:
        """Replace methods of httpx, httpx2, httpcore, httpcore2 and asyncio until `remove`."""
        for web in (httpx, httpx2):
            self.replace(web.HTTPTransport, "handle_request", partial(_wrap_handle, web))
            self.replace(web.AsyncHTTPTransport, "handle_async_request", partial(_wrap_handle_async, web))
        for core in (httpcore, httpcore2):
            for backend, seam in ((core.SyncBackend, SyncBackend), (core.AnyIOBackend, AsyncBackend)):
                self.replace(backend, "connect_tcp", partial(_wrap_connect, partial(seam, core), self._holds_all))
            sync_kind, async_kind, unusable = core.HTTPConnection, core.AsyncHTTPConnection, core.ConnectionNotAvailable
            self.replace(sync_kind, "can_handle_request", partial(self._wrap_can_handle, lambda: None))
            self.replace(sync_kind, "handle_request", partial(self._wrap_connection_handle, unusable))
            self.replace(async_kind, "can_handle_request", partial(self._wrap_can_handle, asyncio.get_running_loop))
            self.replace(async_kind, "handle_async_request", partial(self._wrap_connection_handle_async, unusable))
            self.replace(async_kind, "aclose", _wrap_close)
        self.replace(asyncio.BaseEventLoop, "run_in_executor", _wrap_executor)

    def close_idle(self) -> None:
        """Close idle connections that were made for observed requests.

        A client keeps them in its pool, and an async one belongs to the event loop that the runs had; they are closed
        in that loop with `aclose_idle`.
        """
        for connection in [connection for connection in list(self._owners) if hasattr(connection, "close")]:
            if connection.is_idle():
                connection.close()

    async def aclose_idle(self) -> None:
        """Close idle async connections that were made for observed requests."""
        for connection in [connection for connection in list(self._owners) if hasattr(connection, "aclose")]:
            if connection.is_idle():
                await connection.aclose()

    # ---- connections

    def _wrap_can_handle(self, loop: Callable[[], Any], previous: Any) -> Any:
        def can_handle_request(connection: Any, origin: Any) -> Any:
            owner = self._owners.get(connection, _NO_OWNER)
            if owner is _PARENT_PROCESS or (is_sending() and owner is not loop() and _is_connected(connection)):
                return False
            return previous(connection, origin)

        return can_handle_request

    def _claim(self, connection: Any, loop: Any, unusable: type[Exception]) -> None:
        """Make the loop the owner of a connection that a request is about to use for the first time.

        A pool assigns connections to all waiting requests in the code of any one of them, so a request may be given one
        that it must not use. Raises: unusable then, upon which the pool looks for another.
        """
        owner = self._owners.get(connection, _NO_OWNER)
        if owner is loop:
            return
        if not _is_connected(connection):
            self._owners[connection] = loop
        elif is_sending() or owner is _PARENT_PROCESS:
            raise unusable

    def leave_to_the_parent(self) -> None:
        """In a forked process: use no connection again that its parent has made, or answers to both would get mixed."""
        for connection in list(self._owners):
            self._owners[connection] = _PARENT_PROCESS

    def _wrap_connection_handle(self, unusable: type[Exception], previous: Any) -> Any:
        def handle_request(connection: Any, request: Any) -> Any:
            if self._holds_all or is_sending():
                self._claim(connection, None, unusable)
            return previous(connection, request)

        return handle_request

    def _wrap_connection_handle_async(self, unusable: type[Exception], previous: Any) -> Any:
        async def handle_async_request(connection: Any, request: Any) -> Any:
            if self._holds_all or is_sending():
                self._claim(connection, asyncio.get_running_loop(), unusable)
            return await previous(connection, request)

        return handle_async_request


def _wrap_handle(web: Any, previous: Any) -> Any:
    def handle_request(transport: Any, request: Any) -> Any:
        observer = _observer()
        if observer is None:
            return previous(transport, request)
        copy, exchange = _prepare(web, request, observer)
        with sending_scope(), exchange:
            response = previous(transport, copy)
        return _report_body(response, SyncBody, exchange)

    return handle_request


def _wrap_handle_async(web: Any, previous: Any) -> Any:
    async def handle_async_request(transport: Any, request: Any) -> Any:
        observer = _observer()
        if observer is None:
            return await previous(transport, request)
        copy, exchange = _prepare(web, request, observer)
        with sending_scope(), exchange:
            response = await previous(transport, copy)
        return _report_body(response, AsyncBody, exchange)

    return handle_async_request


def _observer() -> Observer | None:
    # A request of a request's own (a proxy's, a nested hook's) is the same one.
    return None if is_sending() else observer_of_run() or held_code()


def _wrap_executor(previous: Any) -> Any:
    def run_in_executor(loop: Any, executor: Any, function: Any, *arguments: Any) -> Any:
        return previous(loop, executor, as_work(function), *arguments)

    return run_in_executor


def _report_body(response: Any, body: Any, exchange: Exchange) -> Any:
    """Return a response whose body reports to the exchange."""
    if exchange.watches_body:
        exchange.note_response(response.status_code, response.headers.raw)
    response.stream = body(response.stream, exchange)
    return response


def _prepare(web: Any, request: Any, observer: Observer) -> tuple[Any, Exchange]:
    """Return the request to send and its exchange. Raises what the observer raises for a refused request.

    Where nobody records requests, it is the request itself with its waits bounded: nothing but its time is changed.
    With a deadline on the wire it is a copy all the same, since the caller's own, sent again, has another time left.
    """
    records = observer.records
    is_retry = records and any(name.lower() == _RETRY_COUNT and value != b"0" for name, value in request.headers.raw)
    passage = observer.passage(request.method, str(request.url) if records else "", is_retry)
    url = request.url if passage.to is None else _parse_url(web, passage.to)
    with call_scope(passage.call if records else current_call()), deadline_scope(passage.deadline):
        request = wrap_up_request(request)
        exchange = Exchange(
            request,
            admit_all,
            observer.cut if passage.is_held else None,
            url=url,
            read_timeout_s=passage.read_timeout_s,
            limits=passage.limits,
        )
    if not records and (wire_in_force() is None or not passage.is_held):
        if exchange.timeouts and passage.is_held:
            request.extensions = {**request.extensions, "timeout": exchange.timeouts}
        return request, exchange
    headers = exchange.headers
    if passage.to is not None:
        readdressed = [item for item in headers if item[0].lower() not in _OF_THE_ENDPOINT]
        headers = [(b"host", url.netloc), *readdressed]
    headers = headers + [(name.encode("ascii"), value.encode("ascii")) for name, value in passage.headers.items()]
    return _copy(web, request, url, headers, exchange), exchange


def _copy(web: Any, request: Any, url: Any, headers: list[tuple[bytes, bytes]], exchange: Exchange) -> Any:
    """Return the request with another address, other headers and the limits of its exchange."""
    extensions = dict(request.extensions)
    if exchange.timeouts:
        extensions["timeout"] = exchange.timeouts
    # Made once, with everything that is known: httpx looks at every header again whenever one is changed.
    copy = web.Request(request.method, url, headers=headers, stream=request.stream, extensions=extensions)
    with contextlib.suppress(web.RequestNotRead):
        # What can be read again, whoever looks on may read too; a body that is a stream is for the server alone.
        assert request.content is not None
        copy.read()
    return copy


def _is_connected(connection: Any) -> bool:
    """Whether a connection has connected already: a held request uses only what a held request has connected.

    Nobody would hold the reads of one that was connected without hooks, and an async one belongs to an event loop.
    """
    return bool(connection.info() != "CONNECTING")


# Owners that are no event loop: of a connection made without these hooks, or before this process was forked.
_NO_OWNER = object()
_PARENT_PROCESS = object()
_all_adapters: weakref.WeakSet[HttpxAdapter] = weakref.WeakSet()


def _after_fork() -> None:
    for adapter in _all_adapters:
        adapter.leave_to_the_parent()


os.register_at_fork(after_in_child=_after_fork)


def _wrap_close(previous: Any) -> Any:
    async def aclose(connection: Any) -> None:
        try:
            await previous(connection)
        except RuntimeError:
            # A pool closes idle connections for whoever asks next, also those of a loop that is closed by now.
            if not is_sending():
                raise

    return aclose


@functools.lru_cache(maxsize=256)
def _parse_url(web: Any, url: str) -> Any:
    """Return the URL as an object of the library; cached, since a graph's requests go to a few places."""
    return web.URL(url)


@dataclass(frozen=True)
class _OriginalBackend:
    """A client's own backend with its original `connect_tcp`, without hooks."""

    backend: Any
    connect: Any

    def connect_tcp(self, *arguments: Any) -> Any:
        return self.connect(self.backend, *arguments)


def _wrap_connect(seam: Any, holds_all: bool, previous: Any) -> Any:
    def connect_tcp(backend: Any, *arguments: Any, **options: Any) -> Any:
        if not (holds_all or is_sending()):
            return previous(backend, *arguments, **options)
        return seam(_OriginalBackend(backend, previous)).connect_tcp(*arguments, **options)

    return connect_tcp
