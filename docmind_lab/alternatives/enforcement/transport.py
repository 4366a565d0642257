"""A transport that holds one client's requests to the deadline in force, where hooks on all clients are unwelcome.

ChatOpenAI(http_async_client=httpx2.AsyncClient(transport=transport()))
"""

from __future__ import annotations

import asyncio
import os
import weakref
from typing import Any

import httpx
import httpx2

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.core.holds import current_hold
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.transports import (
    AsyncHttpx2Transport,
    AsyncHttpxTransport,
    Httpx2Transport,
    HttpxTransport,
)

_Transports = dict[tuple[type, int], Any]
"""Kind of transport, and the process that made it → the transport."""


class HeldTransport(httpx.BaseTransport, httpx.AsyncBaseTransport, httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """A transport for a client of httpx or httpx2, blocking or async. Outside a deadline it only sends.

    An async client may be used on several event loops: each has connections of its own.
    """

    def __init__(self) -> None:
        self._blocking: _Transports = {}
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Transports] = weakref.WeakKeyDictionary()

    def handle_request(self, request: Any) -> Any:
        """Send a request, held to the deadline in force."""
        kind: Any = HttpxTransport if isinstance(request, httpx.Request) else Httpx2Transport
        _refuse_if_over()
        return self._transport(self._blocking, kind).handle_request(request)

    async def handle_async_request(self, request: Any) -> Any:
        """Send a request, held to the deadline in force, on connections of the calling loop."""
        kind: Any = AsyncHttpxTransport if isinstance(request, httpx.Request) else AsyncHttpx2Transport
        _refuse_if_over()
        inner = self._transport(self._by_loop.setdefault(asyncio.get_running_loop(), {}), kind)
        return await inner.handle_async_request(request)

    def _transport(self, transports: _Transports, kind: type) -> Any:
        # A forked process leaves its parent's connections to it.
        key = (kind, os.getpid())
        if key not in transports:
            transports[key] = kind(surfacing=_cut)
        return transports[key]

    def close(self) -> None:
        """Close the blocking connections."""
        for inner in self._blocking.values():
            inner.close()

    async def aclose(self) -> None:
        """Close the connections of the calling loop; those of a loop that is closed are gone."""
        for inner in self._by_loop.pop(asyncio.get_running_loop(), {}).values():
            await inner.aclose()


def _refuse_if_over() -> None:
    hold = current_hold()
    if hold is not None and hold.in_force is not None:
        hold.refuse_if_over()


def _cut(attempt: Attempt | None, deadline: Deadline | None) -> BaseException:
    hold = current_hold()
    if hold is not None:
        return hold.cut()
    assert deadline is not None, "only a hold or a deadline cuts"
    return RunCut(deadline.exceeded("request", "network"))


def transport() -> HeldTransport:
    """Return a transport for one client, of httpx or httpx2, that holds its requests to the deadline in force."""
    return HeldTransport()
