"""httpx and httpx2 transports over connection pools with the seam's backend.

Each request made inside a `call_scope` becomes an attempt: it is given the call's headers (loopback services only),
the deadline in force, and a pool wait no longer than what is left. An exception is the library's own, so the openai
and qdrant clients treat it as they always do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2

from docmind_lab.network.exchange import Admission, Exchange, Surfacing, admit_all, library_errors
from docmind_lab.network.streams import AsyncBackend, SyncBackend
from docmind_lab.network.wrapping_up import wrap_up_request

MAX_CONNECTIONS = 100  # the httpx default, kept so that a pool behaves as a user's own would


class SyncBody(httpx.SyncByteStream, httpx2.SyncByteStream):
    """The body of a response of httpx or httpx2; reading it reports to the exchange."""

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner, self._exchange = inner, exchange

    def __iter__(self) -> Iterator[bytes]:
        parts = iter(self._inner)
        with library_errors():
            while True:
                with self._exchange:
                    part = next(parts, None)
                if part is None:
                    self._exchange.complete()
                    return
                self._exchange.note_body(part)
                yield part

    def close(self) -> None:
        """Read no further."""
        self._exchange.note_closed()
        self._inner.close()


class AsyncBody(httpx.AsyncByteStream, httpx2.AsyncByteStream):
    """The body of an async response, otherwise as `SyncBody`."""

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner, self._exchange = inner, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = aiter(self._inner)
        with library_errors():
            while True:
                with self._exchange:
                    part = await anext(parts, None)
                if part is None:
                    self._exchange.complete()
                    return
                self._exchange.note_body(part)
                yield part

    async def aclose(self) -> None:
        """Read no further."""
        self._exchange.note_closed()
        await self._inner.aclose()


class _Transport:
    """The part that sync and async transports share: a pool of connections with the seam's backend."""

    core: ModuleType
    web: ModuleType
    backend: Any
    body: Any
    pool: str

    def __init__(
        self,
        *,
        admit: Admission = admit_all,
        max_connections: int = MAX_CONNECTIONS,
        surfacing: Surfacing | None = None,
    ) -> None:
        self._admit, self._surfacing = admit, surfacing
        self._pool = getattr(self.core, self.pool)(
            ssl_context=self.web.create_ssl_context(),
            max_connections=max_connections,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=self.backend(self.core),
        )

    def _response(self, response: Any, exchange: Exchange) -> Any:
        """Return the library's response for that of the pool."""
        exchange.note_response(response.status, response.headers)
        return self.web.Response(
            status_code=response.status,
            headers=response.headers,
            stream=self.body(response.stream, exchange),
            extensions=response.extensions,
        )


class _SyncTransport(_Transport):
    backend, body, pool = SyncBackend, SyncBody, "ConnectionPool"

    def handle_request(self, request: Any) -> Any:
        request = wrap_up_request(request)
        exchange = Exchange(request, self._admit, self._surfacing)
        with library_errors(), exchange:
            response = self._pool.handle_request(exchange.core_request(self.core, request, request.stream))
        return self._response(response, exchange)

    def close(self) -> None:
        self._pool.close()


class _AsyncTransport(_Transport):
    backend, body, pool = AsyncBackend, AsyncBody, "AsyncConnectionPool"

    async def handle_async_request(self, request: Any) -> Any:
        request = wrap_up_request(request)
        exchange = Exchange(request, self._admit, self._surfacing)
        with library_errors(), exchange:
            response = await self._pool.handle_async_request(exchange.core_request(self.core, request, request.stream))
        return self._response(response, exchange)

    async def aclose(self) -> None:
        await self._pool.aclose()


class HttpxTransport(_SyncTransport, httpx.BaseTransport):
    """The seam's transport for `httpx.Client`, and so for QdrantClient."""

    core, web = httpcore, httpx


class Httpx2Transport(_SyncTransport, httpx2.BaseTransport):
    """The seam's transport for `httpx2.Client`, and so for openai and ChatOpenAI."""

    core, web = httpcore2, httpx2


class AsyncHttpxTransport(_AsyncTransport, httpx.AsyncBaseTransport):
    """The seam's transport for `httpx.AsyncClient`, and so for AsyncQdrantClient."""

    core, web = httpcore, httpx


class AsyncHttpx2Transport(_AsyncTransport, httpx2.AsyncBaseTransport):
    """The seam's transport for `httpx2.AsyncClient`, and so for AsyncOpenAI and ChatOpenAI."""

    core, web = httpcore2, httpx2
