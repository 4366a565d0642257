"""The simulated services without sockets and without latency, below the HTTP clients' own connection pools.

Bytes that a pool writes are parsed as a request, and what the services answer is there to be read at once. So a run
costs the CPU of the graph and of the clients, and nothing else; whatever is above the pools does not know.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import httpcore
import httpcore2

from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Headers, Plan, ServiceRequest
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.statistics.latency.profile import LatencyProfile

# Nothing listens there: a client that went past the pools would be refused, not answered.
ADDRESSES = ServiceAddresses.at_port(9)

# The retrieval tool tells the model how long it took: the one thing that differs between equal conversations.
_TOOK = re.compile(rb'processing_time_ms[\\"]+: ?[0-9.e-]+')


class InProcessServices:
    """Answers bytes with bytes, and counts the requests of each kind.

    A reply is worked out once for each request and remembered, so that of two runs that ask the same, the second
    times none of the services' own work. Tags of the seam are not looked at: both arms get the same replies.
    """

    def __init__(self) -> None:
        profile = LatencyProfile.named("fast")
        self.llm, self.vectors = OpenAIService(profile), VectorService(profile)
        self.requests: Counter[str] = Counter()
        self._replies: dict[tuple[str, str, bytes], bytes] = {}
        self._one_at_a_time = threading.Lock()

    def reply(self, method: str, path: str, body: bytes) -> bytes:
        """The whole response to a request."""
        kind = "llm" if path.startswith("/v1/") else "retrieval"
        key = method, path, _TOOK.sub(b"", body)
        with self._one_at_a_time:
            self.requests[kind] += 1
            # Reading changes nothing in the store; what sets it up is not remembered.
            remembered = kind == "llm" or "/points/query" in path
            if remembered and key in self._replies:
                return self._replies[key]
            service = self.llm if kind == "llm" else self.vectors
            made = _as_bytes(service.plan(ServiceRequest(method, path, body=body)))
            if remembered:
                self._replies[key] = made
            return made


def _as_bytes(plan: Plan) -> bytes:
    """The plan's response as it goes over the wire, all of it at once."""
    head = next(step for step in plan.steps if isinstance(step, Headers))
    lines = [f"HTTP/1.1 {head.status} Simulated", *(f"{name}: {value}" for name, value in head.headers)]
    body = b"".join(step.data for step in plan.steps if isinstance(step, Chunk))
    return "\r\n".join([*lines, "", ""]).encode() + body


class _Stream:
    """A connection to the services: one request after the other."""

    def __init__(self, services: InProcessServices) -> None:
        self._services, self._written, self._unread = services, b"", b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._written += buffer
        head, end, body = self._written.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:])
        headers = {name.strip().lower(): value.strip() for name, _, value in fields}
        if not end or len(body) < int(headers.get("content-length", "0")):
            return
        method, target, _ = lines[0].split(" ")
        self._unread += self._services.reply(method, target.partition("?")[0], body)
        self._written = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        part, self._unread = self._unread[:max_bytes], self._unread[max_bytes:]
        return part

    def close(self) -> None:
        pass

    def get_extra_info(self, info: str) -> Any:
        return None


def _backend(core: Any, services: InProcessServices) -> Any:
    """A kind of backend whose connections lead to the services."""

    class Backend(core.SyncBackend):
        def connect_tcp(
            self,
            host: str,
            port: int,
            timeout: float | None = None,
            local_address: str | None = None,
            socket_options: Iterable[Any] | None = None,
        ) -> _Stream:
            return _Stream(services)

    return Backend


def _pool(core: Any, backend: Any) -> Any:
    """A kind of pool that has such a backend, unless it is given another."""

    class Pool(core.ConnectionPool):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{"network_backend": backend(), **options})

    return Pool


@contextlib.contextmanager
def in_process(services: InProcessServices) -> Iterator[None]:
    """Sync clients made during this block reach the services in this process, ours through the seam as ever."""
    with contextlib.ExitStack() as stack:
        for core in (httpcore, httpcore2):
            backend = _backend(core, services)
            pool = _pool(core, backend)
            # The seam asks for the library's own backend; the libraries' own transports say nothing and get theirs.
            stack.enter_context(patch.object(core, "SyncBackend", backend))
            stack.enter_context(patch.object(core, "ConnectionPool", pool))
        yield
