"""HTTP as an ASGI application sees it: requests read, answers sent, and clients that do neither dropped."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from docmind_lab.network.attempts import HEADER_PREFIX
from docmind_lab.services.plan import Chunk, Headers, ServiceRequest, Step, json_steps

# How the openai and anthropic clients count the tries of one call.
_RETRY_COUNT = "x-stainless-retry-count"
# Names of calls in a log: no two requests are the same call.
_numbers = itertools.count(1)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ConnectionDropped(Exception):
    """Raised through the server to make it close the connection mid-reply."""


CLIENT_PATIENCE_S = 20.0
"""How long a client is waited for. One that is alive sends a whole request, or reads a reply, within milliseconds."""


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # one of two classes, chosen when imported
    """uvicorn's HTTP protocol, changed to close a connection on which no request begins within `patience_s`.

    uvicorn itself waits for ever for the rest of a request's headers, and for a closing connection to be read.
    """

    patience_s = CLIENT_PATIENCE_S
    # Stands for no request after which a connection was idle; None is "before the first".
    _BUSY: object = object()
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to watch the new connection."""
        super().connection_made(transport)
        self._watch(self._BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _watch(self, was_idle_after: object) -> None:
        """Look again after a while. was_idle_after: the request after which nothing was under way at this look."""
        self._timer = self.loop.call_later(self.patience_s / 2, self._check, was_idle_after)

    def _check(self, was_idle_after: object) -> None:
        # `cycle` is the latest request; None before the first.
        is_idle = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or (is_idle and was_idle_after is self.cycle):
            self.transport.abort()
            return
        self._watch(self.cycle if is_idle else self._BUSY)


def send_within(send: Send, seconds: float) -> Send:
    """Return a `send` that drops a connection whose client has not read for so many seconds."""

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            raise ConnectionDropped from None

    return send_in_time


async def read_request(scope: MutableMapping[str, Any], receive: Receive) -> ServiceRequest | None:
    """Read the request; None when its client left before it was all there, so that nothing was asked."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return ServiceRequest(
        method=scope["method"],
        path=scope["path"],
        headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]},
        body=body,
        query=scope.get("query_string", b"").decode("latin-1"),
    )


RUN_PATH = "/run"


def request_of_run(request: ServiceRequest) -> ServiceRequest:
    """Return a request whose path names its run, `/run/RUN/SEED/ROLE/v1/…`, as one that its headers tag so.

    Whoever cannot set headers, as a program in another language, is told apart by its base address. Any other request
    is returned as it is.
    """
    parts = request.path.split("/", 5)
    if not request.path.startswith(f"{RUN_PATH}/") or len(parts) < 6:
        return request
    _, _, run_id, seed, role, rest = parts
    retries = request.headers.get(_RETRY_COUNT, "0")
    tags = {
        "run-id": run_id,
        "call-id": f"{role}/{next(_numbers)}",
        "seed": seed,
        "role": role,
        "attempt": str(int(retries) + 1) if retries.isdecimal() else "1",
    }
    tagged = {HEADER_PREFIX + name: value for name, value in tags.items()}
    return replace(request, path=f"/{rest}", headers={**request.headers, **tagged})


def start_of(step: Headers) -> Message:
    """The message that sends the status line and the headers."""
    headers = [(name.encode(), value.encode()) for name, value in step.headers]
    return {"type": "http.response.start", "status": step.status, "headers": headers}


async def send_json(send: Send, status: int, payload: Any, headers: tuple[tuple[str, str], ...] = ()) -> None:
    """Send an answer in JSON."""
    await send_steps(send, json_steps(status, payload, headers))


async def send_steps(send: Send, steps: tuple[Step, ...]) -> None:
    """Send an answer of two steps: its headers and its body."""
    headers, chunk = steps
    assert isinstance(headers, Headers)
    assert isinstance(chunk, Chunk)
    await send(start_of(headers))
    await send({"type": "http.response.body", "body": chunk.data, "more_body": False})
