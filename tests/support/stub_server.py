"""A stub server over plain sockets: what it answers, and when, is a function of the test's own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


class Stopped(Exception):
    """The test is over: a stub's answer ends wherever it is."""


@dataclass
class StubRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class StubConnection:
    """What an answer may do. pause: waits, and ends the answer when the test is over."""

    socket: socket.socket
    stopped: threading.Event

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def pause(self, seconds: float) -> None:
        if self.stopped.wait(seconds):
            raise Stopped


Answer = Callable[[StubRequest, StubConnection], None]


@dataclass
class StubServer:
    """Answers each request with `answer`, every connection in a thread of its own."""

    answer: Answer
    host: str = "127.0.0.1"
    requests: list[StubRequest] = field(default_factory=list)
    connections: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listener = socket.create_server((self.host, 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://{self.host}:{self.port}"
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections += 1
                self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        # A client that leaves mid-answer, and the end of the test, are both an ordinary end here.
        with connection, connection.makefile("rb") as incoming, contextlib.suppress(OSError, Stopped):
            while request := _read(incoming):
                self.requests.append(request)
                self.answer(request, StubConnection(connection, self.stopped))

    def close(self) -> None:
        self.stopped.set()
        # Closing alone would leave the accepting thread in its call.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def _read(incoming) -> StubRequest | None:
    start = incoming.readline().decode()
    if not start:
        return None
    method, path, _ = start.split(" ", 2)
    headers: dict[str, str] = {}
    while line := incoming.readline().decode().strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    return StubRequest(method, path, headers, incoming.read(int(headers.get("content-length", 0))))
