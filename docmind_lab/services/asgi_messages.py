"""HTTP as an ASGI application sees it: requests read, and answers sent."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import replace
from typing import Any

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


async def send_json(send: Send, status: int, payload: Any) -> None:
    """Send an answer in JSON."""
    await send_steps(send, json_steps(status, payload))


async def send_steps(send: Send, steps: tuple[Step, ...]) -> None:
    """Send an answer of two steps: its headers and its body."""
    headers, chunk = steps
    assert isinstance(headers, Headers)
    assert isinstance(chunk, Chunk)
    await send(start_of(headers))
    await send({"type": "http.response.body", "body": chunk.data, "more_body": False})
