"""A server that is probed: calls that can be left at any instant, and what it says of its own work.

The lab's service says that by its log, others by their counters.

To look can change what is seen. llama.cpp's server notices that a client has left only when it has had nothing else to
report for a second; a client that polls its counters keeps it from noticing. So counters are read when a call is over,
and while it may go on no more often than every `LEAST_GAP_S`.

with ProbeCall(target, body, run_id="probe-1") as call:
    call.read_token()
    call.leave("RST")
truth = truth_of(target)        # None for a server that says nothing
truth.look().tokens             # 131.0
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import re
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import urlsplit

import httpx

from docmind_lab.core.addresses import same_origin
from docmind_lab.core.errors import ServiceError
from docmind_lab.core.settings import Settings
from docmind_lab.network.attempts import HEADER_PREFIX
from docmind_lab.network.live_endpoints import reason_of
from docmind_lab.services.log import RequestRow
from docmind_lab.services.server import LogClient

Leaving = Literal["FIN", "RST", "FIN, polled"]
"""How a client leaves: it closes the connection, or resets it.

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

    def __init__(self, target: Target, body: Mapping[str, Any], run_id: str) -> None:
        self._connection = target.connect()
        self.begun_at_s = time.monotonic()
        payload = json.dumps({"model": target.model, **target.extra, **body}).encode()
        try:
            self._connection.request(
                "POST",
                urlsplit(target.base_url).path.rstrip("/") + "/chat/completions",
                payload,
                target.headers(run_id),
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


_ANSWERS_WITHIN_S = 30.0
# A line of Prometheus' text format: name, labels, value, instant. Comments begin with #.
_SAMPLE: Final = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{.*\})?[ \t]+(\S+)", re.MULTILINE)
LEAST_GAP_S: Final = 2.5


@dataclass(frozen=True)
class Look:
    """What the server says at one instant.

    busy: calls that it works on or has in its queue. queued: calls of those that wait in its queue. tokens: tokens that
    it has generated in calls that are over. prompt_s: seconds that it has spent on prompts of calls; None where it does
    not say. generating_s: seconds that it has spent on generating tokens; None where it does not say.
    """

    busy: int
    queued: int
    tokens: float
    prompt_s: float | None = None
    generating_s: float | None = None


def _get(target: Target, path: str) -> tuple[int, str]:
    headers = {"authorization": f"Bearer {target.api_key}"} if target.api_key else {}
    try:
        response = httpx.get(target.root + path, headers=headers, timeout=_ANSWERS_WITHIN_S, trust_env=False)
    except httpx.HTTPError as error:
        raise ServiceError(f"{target.root}{path} cannot be read: {reason_of(error)}") from error
    return response.status_code, response.text


@dataclass
class LabLog:
    """The log of the lab's own service: a row for each call."""

    log_url: str
    server: str = "docmind-lab serve"

    def rows(self, run_id: str, wait_quiet_s: float = 0.0, since_s: float = -math.inf) -> list[RequestRow]:
        """Return the rows of a call, after waiting for the service to be done with it.

        A gateway may drop the header that names the run. Then they are the rows without a run, since an instant.

        wait_quiet_s: how long to wait for the service, seconds. since_s: the instant, seconds of `time.monotonic`.
        """
        with contextlib.closing(LogClient(self.log_url)) as client:
            if rows := client.rows(run_id, wait_quiet_s):
                return rows
            return [row for row in client.rows("", wait_quiet_s) if row.received_at >= since_s]


# Server → the counters that hold the fields of a `Look`; `busy` comes without what is queued.
_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "llama.cpp server": {
        "busy": "llamacpp:requests_processing",
        "queued": "llamacpp:requests_deferred",
        "tokens": "llamacpp:tokens_predicted_total",
        "prompt_s": "llamacpp:prompt_seconds_total",
        "generating_s": "llamacpp:tokens_predicted_seconds_total",
    },
    "vLLM": {
        "busy": "vllm:num_requests_running",
        "queued": "vllm:num_requests_waiting",
        "tokens": "vllm:generation_tokens_total",
    },
}


@dataclass
class Counters:
    """A server's own count of its work, of all calls together: its /metrics.

    slots: how many calls it works on at once.
    """

    target: Target
    server: str
    slots: int = 1

    def look(self) -> Look:
        """What it says now. Raises: ServiceError when it says nothing any more."""
        metrics = _metrics(self.target)
        values = {field: metrics[name] for field, name in _NAMES[self.server].items()}
        queued = int(values.pop("queued"))
        return Look(busy=int(values.pop("busy")) + queued, queued=queued, **values)


def _metrics(target: Target) -> Mapping[str, float]:
    status, text = _get(target, "/metrics")
    if status != 200:
        raise ServiceError(f"{target.root}/metrics answered HTTP {status}")
    values: dict[str, float] = {}
    for name, value in _SAMPLE.findall(text):
        values[name] = values.get(name, 0.0) + float(value)
    return values


def first_model(target: Target) -> str:
    """The first model that the server lists. Raises: ServiceError when the server does not answer or lists none."""
    status, text = _get(target, f"{urlsplit(target.base_url).path.rstrip('/')}/models")
    try:
        return str(json.loads(text)["data"][0]["id"])
    except (ValueError, LookupError, TypeError) as error:
        raise ServiceError(
            f"{target.base_url} lists no models (HTTP {status}); name one, and check that the address ends as /v1"
        ) from error


def target_of(url: str, model: str, settings: Settings, *, name: str) -> Target:
    """Return the server at an address, which the settings must allow. model: empty for its first. name: of the address.

    Raises: ConfigurationError for an address that may not be reached; ServiceError as `first_model`.
    """
    settings.admit(url, name=name)
    # The key is of one endpoint, and goes to no other.
    api_key = settings.llm.api_key.get_secret_value() if same_origin(url, settings.llm.base_url or "") else ""
    return Target(url, model or first_model(Target(url, "", api_key)), api_key)


def truth_of(target: Target) -> LabLog | Counters | None:
    """How a server accounts for its own work; None if it does not, as hosted ones."""
    if target.log_url:
        return LabLog(target.log_url)
    with contextlib.suppress(ServiceError, ValueError, KeyError, TypeError):
        status, text = _get(target, "/log?run_id=probe")
        if status == 200 and "rows" in json.loads(text):
            return LabLog(f"{target.root}/log")
    with contextlib.suppress(ServiceError, ValueError, KeyError, TypeError):
        metrics = _metrics(target)
        if any(name.startswith("llamacpp:") for name in metrics):
            status, text = _get(target, "/slots")
            slots: Any = json.loads(text) if status == 200 else None
            if isinstance(slots, list):
                return Counters(target, "llama.cpp server", len(slots))
        if any(name.startswith("vllm:") for name in metrics):
            return Counters(target, "vLLM")
    return None
