"""Network backends that observe bytes and hold every operation to the deadline.

A client's own timeout applies to one read at a time, so a trickled body never trips it. Here every connect, TLS
handshake, write and read gets the smaller of the client's timeout and what is left of the deadline in force when the
request was made; the pool wait is bounded by the transport. What surfaces is the library's own timeout exception.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from docmind_lab.core.deadlines import CappedTimeout, current_deadline
from docmind_lab.core.holds import blocking_on
from docmind_lab.network.attempts import Attempt, current_attempt

# A write loops over sends that may each block for the whole timeout; smaller pieces meet the deadline more often.
_WRITE_PIECE_BYTES = 16_384


def _cap(timeout_s: float | None, timeout_error: type[Exception], attempt: Attempt | None) -> float | None:
    """Return an operation's timeout capped by the deadline. Raises: `timeout_error` when no time is left.

    attempt: the current one.
    """
    deadline = current_deadline() if attempt is None else attempt.deadline and attempt.deadline.in_force
    if deadline is None:
        return timeout_s.own_s if isinstance(timeout_s, CappedTimeout) else timeout_s
    allowed_s = deadline.cap(timeout_s)
    if allowed_s <= 0:
        raise timeout_error("the deadline has passed")
    return allowed_s


def _rest(timeout_s: float | None, waited_s: float | None, error: Exception) -> float | None:
    """Return for how long a read that timed out goes on, if what bounded it was a deadline that is in force no more.

    Raises: `error`, of any other read.
    """
    if not isinstance(timeout_s, CappedTimeout) or not timeout_s.is_lifted or waited_s is None:
        raise error
    rest_s = timeout_s.rest(waited_s)
    if rest_s == 0:
        raise error
    return rest_s


def end_waits(connection: object) -> None:
    """End what other threads wait for on a socket: its reads find the end of the stream. Any other object is left."""
    if isinstance(connection, socket.socket):
        with contextlib.suppress(OSError):
            # Below TLS, whose own way of closing is not safe while another thread reads.
            socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _resolve(core: ModuleType, host: str, port: int, timeout_s: float) -> list[str]:
    """Resolve a host name within a bounded time, in a thread, since getaddrinfo has no timeout."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    addresses: list[str] = []
    failure: list[OSError] = []
    done = threading.Event()

    def look_up() -> None:
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses.extend(dict.fromkeys(str(info[4][0]) for info in infos))
        except OSError as error:
            failure.append(error)
        done.set()

    threading.Thread(target=look_up, name="docmind-resolve", daemon=True).start()
    if not done.wait(timeout_s):
        raise core.ConnectTimeout(f"looking up {host} passed the deadline")
    if failure:
        raise core.ConnectError(str(failure[0])) from failure[0]
    return addresses


class _StreamLogic:
    """The part that sync and async streams share: records instants and caps timeouts. core: httpcore or httpcore2."""

    def __init__(self, core: ModuleType, inner: Any) -> None:
        self.core, self.inner = core, inner

    def _before_write(self, timeout_s: float | None) -> float | None:
        attempt = current_attempt()
        if attempt is not None:
            attempt.note_acquired()
        allowed_s = _cap(timeout_s, self.core.WriteTimeout, attempt)
        if attempt is not None:
            attempt.note_sent()
        return allowed_s

    def _after_read(self, data: bytes, attempt: Attempt | None) -> bytes:
        if attempt is not None and data:
            attempt.note_first_byte()
        return data

    def get_extra_info(self, info: str) -> Any:
        """Return the wrapped stream's information, such as its socket."""
        return self.inner.get_extra_info(info)


class _SyncStream(_StreamLogic):
    """A blocking stream held to the deadline."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        attempt = current_attempt()
        with blocking_on(self.shut_down):
            while True:
                allowed_s = _cap(timeout, self.core.ReadTimeout, attempt)
                try:
                    return self._after_read(self.inner.read(max_bytes, allowed_s), attempt)
                except self.core.ReadTimeout as error:
                    timeout = _rest(timeout, allowed_s, error)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_PIECE_BYTES):
            with blocking_on(self.shut_down):
                self.inner.write(buffer[start : start + _WRITE_PIECE_BYTES], self._before_write(timeout))

    def shut_down(self) -> None:
        """End what another thread waits for on this connection: its reads find the end of the stream."""
        if hasattr(self.inner, "shut_down"):
            self.inner.shut_down()
            return
        end_waits(self.inner.get_extra_info("socket"))

    def close(self) -> None:
        self.inner.close()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        allowed_s = _cap(timeout, self.core.ConnectTimeout, current_attempt())
        return type(self)(self.core, self.inner.start_tls(ssl_context, server_hostname, allowed_s))


class _AsyncStream(_StreamLogic):
    """An async stream held to the deadline."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        attempt = current_attempt()
        while True:
            allowed_s = _cap(timeout, self.core.ReadTimeout, attempt)
            try:
                return self._after_read(await self.inner.read(max_bytes, allowed_s), attempt)
            except self.core.ReadTimeout as error:
                timeout = _rest(timeout, allowed_s, error)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_PIECE_BYTES):
            await self.inner.write(buffer[start : start + _WRITE_PIECE_BYTES], self._before_write(timeout))

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        allowed_s = _cap(timeout, self.core.ConnectTimeout, current_attempt())
        return type(self)(self.core, await self.inner.start_tls(ssl_context, server_hostname, allowed_s))


def _note_connecting() -> Attempt | None:
    """Note that a connection is being made, and return the attempt that it is made for."""
    attempt = current_attempt()
    if attempt is not None:
        attempt.note_acquired()
    return attempt


class SyncBackend:
    """Opens blocking connections of httpcore or httpcore2 within the deadline, name look-up included."""

    def __init__(self, core: ModuleType, inner: Any = None) -> None:
        self.core = core
        self.inner = core.SyncBackend() if inner is None else inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        """Connect to a host."""
        attempt = _note_connecting()
        options = list(socket_options or ())
        addresses = [host]
        if (current_deadline() if attempt is None else attempt.deadline) is not None:
            addresses = _resolve(self.core, host, port, _cap(timeout, self.core.ConnectTimeout, attempt) or 0.0)
        failure: Exception | None = None
        for address in addresses:
            try:
                allowed_s = _cap(timeout, self.core.ConnectTimeout, attempt)
                stream = self.inner.connect_tcp(address, port, allowed_s, local_address, options)
                return _SyncStream(self.core, stream)
            except self.core.ConnectError as error:
                failure = error
        raise failure or self.core.ConnectError(f"no address for {host}")


class AsyncBackend:
    """Opens async connections of either within the deadline; the name look-up is cancellable, so the cap covers it."""

    def __init__(self, core: ModuleType, inner: Any = None) -> None:
        self.core = core
        self.inner = core.AnyIOBackend() if inner is None else inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Any:
        """Connect to a host."""
        attempt = _note_connecting()
        allowed_s = _cap(timeout, self.core.ConnectTimeout, attempt)
        options = list(socket_options or ())
        return _AsyncStream(self.core, await self.inner.connect_tcp(host, port, allowed_s, local_address, options))
