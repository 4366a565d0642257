"""An ASGI middleware that holds each request of a service to what its caller says and what the service allows.

app.add_middleware(DeadlineMiddleware, at_most_s=20, transit_s=0.02)      # FastAPI, Starlette
app = DeadlineMiddleware(app, at_most_s=20)                               # any ASGI application
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from docmind_lab.alternatives.enforcement.wire.request import request_deadline
from docmind_lab.alternatives.enforcement.wire.server_limits import ServerLimits
from docmind_lab.core.duration_headers import DEADLINE_HEADER, header_name, smallest_s
from docmind_lab.core.errors import BudgetRefused, DeadlineError

_log = logging.getLogger("docmind_lab.wire")
# The messages that end a response, and how each says that another one follows.
_ENDS = {"http.response.body": "more_body", "http.response.pathsend": "", "http.response.trailers": "more_trailers"}

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

    A response that was sent whole is a success. What follows it, and what the request left behind, is under no deadline
    of the request: background tasks, and tasks that nobody awaits. Tasks that nobody awaits outlive a request that is
    cut too. A cut after the response has begun is a warning in the log `docmind_lab.wire`, with the route.

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
        label = f"{scope['method']} {scope['path']}"
        try:
            limit_s = self._limits.admitted_s(self._came_s(scope), label)
        except BudgetRefused as error:
            await _send_504("deadline_refused", error, send)
            return
        block = None if limit_s is None else request_deadline(limit_s, label=label)
        response = _Response(send, block)
        try:
            async with block or contextlib.nullcontext():
                await self.app(scope, receive, response.send)
            await response.end()
        except DeadlineError as error:
            if not response.has_begun:
                await _send_504("deadline_exceeded", error, send)
            elif response.is_released:
                # A deadline of what came after the response, which nobody else would hear of.
                raise
            else:
                what = "the work after its response" if response.is_whole else "its response, which had begun"
                route, elapsed_s, limit_s = _route_of(scope), error.elapsed_s, error.limit_s
                _log.warning("%s: the deadline of %.3f s cut %s, after %.3f s", route, limit_s, what, elapsed_s)

    def _came_s(self, scope: MutableMapping[str, Any]) -> float | None:
        name = self._header.encode("ascii")
        values = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]
        return smallest_s(values, self._header)


def _route_of(scope: MutableMapping[str, Any]) -> str:
    """Return the method and the route of a request, for a log; its path where the application names no route."""
    # A path has been decoded, and may have a line break in it.
    return f"{scope['method']} {getattr(scope.get('route'), 'path', None) or ascii(scope['path'])[1:-1]}"


class _Response:
    """The response to one request, as the application sends it.

    Args:
        send: Sends a message to the server.
        block: The deadline around the application; None for no limit.
    """

    def __init__(self, send: Send, block: request_deadline | None) -> None:
        self._send, self._block = send, block
        self.has_begun = self.is_whole = self._has_body = self._has_trailers = False
        self._late_end: Message | None = None

    async def send(self, message: Message) -> None:
        """Send a message of the application, but keep the end of a stream back if it comes at the deadline.

        Middleware between here and the endpoint may end the stream of an endpoint that was cut, as if it were whole,
        and raise the cut afterwards.
        """
        is_body = message["type"] == "http.response.body"
        hold = None if self._block is None else self._block.hold
        if is_body and self._has_body and not message.get("more_body") and hold is not None and hold.is_over:
            self._late_end = message
            return
        self.has_begun = self.has_begun or message["type"] == "http.response.start"
        self._has_body = self._has_body or is_body
        await self._pass(message)

    async def _pass(self, message: Message) -> None:
        await self._send(message)
        kind = message["type"]
        self._has_trailers = self._has_trailers or message.get("trailers", False)
        if kind in _ENDS and not message.get(_ENDS[kind]) and (kind.endswith("trailers") or not self._has_trailers):
            self.is_whole = True
            if self._block is not None:
                self._block.release()

    @property
    def is_released(self) -> bool:
        """Whether the deadline has ended with the response, or there was none."""
        hold = None if self._block is None else self._block.hold
        return self.is_whole and (hold is None or hold.is_released)

    async def end(self) -> None:
        """Send the end that was kept back, since the application has returned and not been cut."""
        if self._late_end is not None:
            await self._pass(self._late_end)


async def _send_504(kind: str, error: DeadlineError, send: Send) -> None:
    body = json.dumps({"error": {"type": kind, "message": str(error)}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 504, "headers": headers})
    await send({"type": "http.response.body", "body": body})
