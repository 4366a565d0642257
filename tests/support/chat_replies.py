"""What a chat endpoint and a vector store answer, as bytes for a stub server."""

from __future__ import annotations

import json
from typing import Any

from stub_server import Answer, StubConnection, StubRequest

MESSAGES: Any = [{"role": "user", "content": "Why?"}]
BODY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "So."}}],
        "result": {"collections": []},
        "status": "ok",
        "time": 0.0,
    }
).encode()
EVENT = b'data: {"id":"1","object":"chat.completion.chunk","created":0,"model":"m","choices":[]}\n\n'
DONE = b"data: [DONE]\n\n"
# A server that is asked to be silent gives up in the end, so that a broken test fails instead of waiting.
SILENCE_S = 5.0


def head(
    status: int = 200, headers: str = "", length: int | None = len(BODY), content_type: str = "application/json"
) -> bytes:
    size = "" if length is None else f"content-length: {length}\r\n"
    return f"HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\n{size}{headers}\r\n".encode()


def reply(body: bytes = BODY, status: int = 200, headers: str = "", content_type: str = "application/json") -> bytes:
    return head(status, headers, len(body), content_type) + body


def answering(content: bytes) -> Answer:
    """Return an answer that is these bytes."""
    return lambda request, connection: connection.send(content)


def at_once(request: StubRequest, connection: StubConnection) -> None:
    connection.send(reply())


def silent(request: StubRequest, connection: StubConnection) -> None:
    connection.pause(SILENCE_S)
    raise OSError
