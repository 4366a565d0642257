"""HTTP connections of the simulated services, which are closed when the client neither sends nor reads."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

CLIENT_PATIENCE_S = 20.0
"""How long a client is waited for. One that is alive sends a whole request, or reads a reply, within milliseconds."""


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, chosen when imported
    """uvicorn's HTTP protocol, changed to close a connection on which no request begins within `patience_s`.

    uvicorn itself waits for ever for the rest of a request's headers, and for a closing connection to be read.
    """

    patience_s = CLIENT_PATIENCE_S
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to watch the new connection."""
        super().connection_made(transport)
        self._watch(was_idle_after=self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, was_idle_after: object) -> None:
        self._timer = self.loop.call_later(self.patience_s / 2, self._check, was_idle_after)

    def _check(self, was_idle_after: object) -> None:
        # `cycle` is the latest request; None before the first.
        is_idle = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or (is_idle and was_idle_after is self.cycle):
            self.transport.abort()
            return
        # The protocol itself stands for "not idle": no cycle is it.
        self._watch(was_idle_after=self.cycle if is_idle else self)
