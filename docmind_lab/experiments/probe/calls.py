"""One call to a model server over a connection of its own, which can be left at any instant.

with ProbeCall(target, body, run_id="probe-1") as call:
    call.read_token()
    call.leave("RST")
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from docmind_lab.core.errors import ServiceError
from docmind_lab.network.attempts import HEADER_PREFIX

Leaving = Literal["FIN", "RST", "client timeout", "FIN, polled"]
"""How a client leaves: it closes the connection, resets it, or the official client does so at its own timeout.

"FIN, polled" closes it too, while somebody reads the server's counters all the time, which can change what it does.
"""

_PATIENCE_S = 600.0


@dataclass(frozen=True)
class Target:
    """A model server that is probed.

    base_url: address of its OpenAI-compatible interface, as "http://127.0.0.1:8080/v1". extra: further fields of each
    request body. log_url: log of the lab's own service, where that answers behind a gateway; empty for none.
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    log_url: str = ""

    @property
    def root(self) -> str:
        """The address without the path of the interface, where servers have their counters."""
        return self.base_url.rstrip("/").removesuffix("/v1")

    def connect(self, timeout_s: float = _PATIENCE_S) -> http.client.HTTPConnection:
        """A connection to the server. It is opened by the first request."""
        address = urlsplit(self.base_url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        return kind(address.hostname or "", address.port, timeout=timeout_s)

    def headers(self, run_id: str) -> dict[str, str]:
        """Headers of a request; the lab's own service files it under the run."""
        headers = {"content-type": "application/json", "connection": "close", f"{HEADER_PREFIX}run-id": run_id}
        return headers | ({"authorization": f"Bearer {self.api_key}"} if self.api_key else {})


class ProbeCall:
    """A chat completion under way, from construction until it is left or read to its end.

    body: fields of the request besides `model` and the target's extra ones.

    begun_at_s: when the connection was opened, seconds of `time.monotonic`. sent_at_s: when the request had been sent,
    likewise. left_at_s: when the client left; None while it is there.

    Raises: ServiceError when the server cannot be reached.
    """

    def __init__(
        self, target: Target, body: Mapping[str, Any], run_id: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._connection = target.connect()
        self.begun_at_s = time.monotonic()
        payload = json.dumps({"model": target.model, **target.extra, **body}).encode()
        try:
            self._connection.request(
                "POST",
                urlsplit(target.base_url).path.rstrip("/") + "/chat/completions",
                payload,
                target.headers(run_id) | dict(headers or {}),
            )
        except OSError as error:
            self._connection.close()
            raise ServiceError(f"{target.base_url} cannot be reached: {error}") from error
        self.sent_at_s = time.monotonic()
        self.left_at_s: float | None = None
        self._response: http.client.HTTPResponse | None = None

    def leave(self, how: Leaving) -> float:
        """Leave now, and return the instant: seconds of `time.monotonic`."""
        connection = self._connection.sock or (self._response and self._response.fp.raw._sock)  # type: ignore[attr-defined]
        if isinstance(connection, socket.socket):
            if how == "RST":
                # A socket that does not linger is reset when it is closed.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                # The server may have closed it already.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.left_at_s = time.monotonic()
        self.close()
        return self.left_at_s

    def read_token(self) -> dict[str, Any] | None:
        """The next event of a stream that carries text or tool calls; None at its end.

        Raises: ServiceError when the server refuses the call or the connection ends.
        """
        for event in iter(self._event, None):
            choices = event.get("choices") or [{}]
            delta = choices[0].get("delta") or {}
            if delta.get("content") or delta.get("reasoning_content") or delta.get("tool_calls"):
                return event
        return None

    def answer(self) -> dict[str, Any]:
        """The whole answer of a call without streaming. Raises: ServiceError as `read_token`."""
        response = self._responded()
        try:
            return dict(json.loads(response.read()))
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ServiceError(f"the answer cannot be read: {error}") from error

    def close(self) -> None:
        """Close the connection, as a client does that has read its answer."""
        if self._response is not None:
            self._response.close()
        self._connection.close()

    def _responded(self) -> http.client.HTTPResponse:
        if self._response is None:
            try:
                self._response = self._connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise ServiceError(f"the server did not answer: {error}") from error
            if self._response.status >= 400:
                text = self._response.read(500).decode(errors="replace")
                raise ServiceError(f"the server answered HTTP {self._response.status}: {' '.join(text.split())}")
        return self._response

    def _event(self) -> dict[str, Any] | None:
        response = self._responded()
        while True:
            try:
                line = response.readline()
            except (OSError, http.client.HTTPException) as error:
                raise ServiceError(f"the stream broke off: {error}") from error
            if not line or line.strip() == b"data: [DONE]":
                return None
            if line.startswith(b"data: "):
                return dict(json.loads(line[6:]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.left_at_s is None:
            self.close()
