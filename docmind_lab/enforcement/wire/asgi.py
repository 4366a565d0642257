"""An ASGI middleware that holds each request of a service to what its caller says and what the service allows.

app.add_middleware(DeadlineMiddleware, at_most_s=20, transit_s=0.02)      # FastAPI, Starlette
app = DeadlineMiddleware(app, at_most_s=20)                               # any ASGI application
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from docmind_lab.core.deadline_headers import DEADLINE_HEADER, header_name, smallest_s
from docmind_lab.core.errors import BudgetRefused, DeadlineError
from docmind_lab.enforcement.scope import deadline
from docmind_lab.enforcement.wire.limits import ServerLimits

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class DeadlineMiddleware:
    """Put a deadline in force around each HTTP request: the smaller of what its header says and what is allowed.

    A request that cannot be met is answered with 504 before the application sees it. One that the deadline cuts is
    answered with 504 too; a response that has begun ends there, incomplete, so that no client takes it for whole.
    Web sockets and the lifespan of the application pass through. What runs in a thread, as plain `def` endpoints do,
    is not cancelled: it is held at its next request.

    Args:
        app: The application.
        at_most_s: Seconds that a request may take; None for what its header says only.
        header: The header that carries the time left, `x-envoy-expected-rq-timeout-ms` or `grpc-timeout` or another
            one in milliseconds. One that cannot be read counts as absent.
        transit_s: Seconds taken off what the header says, for the way here and back.
        least_s: Seconds that a request needs at least.

    Raises:
        ConfigurationError: A value cannot be used.
    """

    def __init__(
        self,
        app: Application,
        *,
        at_most_s: float | None = None,
        header: str = DEADLINE_HEADER,
        transit_s: float = 0.0,
        least_s: float = ServerLimits.least_s,
    ) -> None:
        self.app, self._header = app, header_name(header)
        self._limits = ServerLimits(at_most_s, transit_s, least_s)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection of the server, as ASGI has it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def note_and_send(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        label = f"{scope['method']} {scope['path']}"
        try:
            limit_s = self._limits.admitted_s(self._came_s(scope), label)
        except BudgetRefused as error:
            await _send_504("deadline_refused", error, send)
            return
        try:
            async with contextlib.nullcontext() if limit_s is None else deadline(limit_s, label=label):
                await self.app(scope, receive, note_and_send)
        except DeadlineError as error:
            if not has_begun:
                await _send_504("deadline_exceeded", error, send)

    def _came_s(self, scope: MutableMapping[str, Any]) -> float | None:
        name = self._header.encode("ascii")
        values = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]
        return smallest_s(values, self._header)


async def _send_504(kind: str, error: DeadlineError, send: Send) -> None:
    body = json.dumps({"error": {"type": kind, "message": str(error)}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 504, "headers": headers})
    await send({"type": "http.response.body", "body": body})
