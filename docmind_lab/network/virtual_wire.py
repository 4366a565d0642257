"""One connection inside a process, in virtual time: it replaces a pair of sockets.

A client writes, and the server's end has the bytes at once; it sends, and a waiting read gets them. Nothing
is lost, nothing is late but what the server does late: the wire is as quick as loopback is meant to be.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol


class Peer(Protocol):
    """The server's end of a wire. The client's thread calls it at the instant of the event; it must not wait."""

    def received(self, data: bytes) -> None:
        """Called when the client has written bytes."""

    def client_left(self) -> None:
        """Called when the client has closed the connection."""


Listener = Callable[["Wire"], Peer]
"""Accepts a connection from a client, and returns the server's end."""


class Wire:
    """The bytes on their way to a client, and the reader that waits for them; one reader at a time.

    peer: the server's end. left: whether the client closed it. ended: whether the server did, or its run is over.
    """

    def __init__(self, listener: Listener) -> None:
        self.left = self.ended = False
        self._there = bytearray()
        self._wake: Callable[[], object] | None = None
        self.peer = listener(self)

    # ---- the server's end

    def send(self, data: bytes) -> None:
        """Send bytes to the client; they are dropped if the client has left."""
        if data and not (self.left or self.ended):
            self._there += data
            self._wake_reader()

    def hang_up(self) -> None:
        """Close the connection from the server's side; bytes already sent can still be read."""
        self.ended = True
        self._wake_reader()

    # ---- the client's end

    def write(self, data: bytes) -> None:
        """Hand bytes to the server; if it has hung up they are lost without error, as on a socket's first write."""
        if data and not (self.left or self.ended):
            self.peer.received(data)

    def leave(self) -> None:
        """Close the connection from the client's side. The server sees it now."""
        if self.left:
            return
        self.left = True
        self._wake_reader()
        if not self.ended:
            self.peer.client_left()

    @property
    def readable(self) -> bool:
        """Whether a read would not wait: bytes are there, or the end."""
        return bool(self._there) or self.ended or self.left

    def take(self, max_bytes: int) -> bytes:
        """Return the bytes that are there, b"" at the end; only for a readable wire."""
        data = bytes(self._there[:max_bytes])
        del self._there[:max_bytes]
        return data

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for virtual seconds until the wire is readable; return whether it is. A tie counts as late."""
        changed = threading.Lock()
        changed.acquire()
        self._wake = changed.release
        try:
            return changed.acquire(timeout=-1 if timeout_s is None else timeout_s)
        finally:
            self._wake = None

    async def wait_async(self, timeout_s: float | None) -> bool:
        """Wait as `wait` does, in a task."""
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[bool] = loop.create_future()

        def wake() -> None:
            # A loop that ended with its run has nobody to tell.
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, changed, True)

        self._wake = wake
        timer = None if timeout_s is None else loop.call_later(timeout_s, _settle, changed, False)
        try:
            return await changed
        finally:
            self._wake = None
            if timer is not None:
                timer.cancel()

    def _wake_reader(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()


def _settle(future: asyncio.Future[bool], result: bool) -> None:
    if not future.done():
        future.set_result(result)
