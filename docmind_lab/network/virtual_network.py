"""A network without sockets for one run in virtual time, below httpcore and httpcore2.

    with virtual_network(clock, {("127.0.0.1", 1): Address(listener)}):
        ...                    # for `VirtualClock(on_entry=[...])`

Clients that were built before the run are caught too, since it is the methods of the public network backends that are
replaced, for the run's actors only. Pools, their waits, timeouts of single reads and retries stay the real ones. What
is not registered is refused at once; names are known if they are registered, and nobody is asked.

A connection belongs to the run in which it was made: no other run and no other thread is given it by a pool that they
share, and it is closed when its run ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import httpcore
import httpcore2

from docmind_lab.network.virtual_wire import Listener, Wire
from docmind_lab.virtual_time import VirtualClock
from docmind_lab.virtual_time.kernel import calling_actor

_NOT_NOW = f"[Errno {errno.EAGAIN}] {os.strerror(errno.EAGAIN)}"
_NO_TLS = "there is no TLS in virtual time; use http://"
_CLIENT_ADDRESS = ("127.0.0.1", 0)


@dataclass(frozen=True)
class Address:
    """The server at a host and port. connect_s: virtual seconds until a connection is made; inf for never."""

    listener: Listener
    connect_s: float = 0.0


Addresses = Mapping[tuple[str, int], Address]


class _Stream:
    """The part that sync and async virtual streams share. core: httpcore or httpcore2."""

    def __init__(self, core: ModuleType, wire: Wire, address: tuple[str, int]) -> None:
        self.core, self._wire, self._address = core, wire, address

    def _read(self, max_bytes: int) -> bytes:
        if self._wire.left:
            raise self.core.ReadError("the connection was closed on this side")
        return self._wire.take(max_bytes)

    def _write(self, buffer: bytes) -> None:
        if self._wire.left:
            raise self.core.WriteError("the connection was closed on this side")
        self._wire.write(bytes(buffer))

    def get_extra_info(self, info: str) -> Any:
        """Return one fact about the stream: whether it is readable, or an address."""
        values = {
            "is_readable": self._wire.readable,
            "client_addr": _CLIENT_ADDRESS,
            "server_addr": self._address,
        }
        return values.get(info)


class _SyncStream(_Stream):
    """A blocking stream with a socket's timeouts: 0 means "not now" and raises no timeout error."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._wire.readable:
            if timeout == 0:
                raise self.core.ReadError(_NOT_NOW)
            if not self._wire.wait(timeout):
                raise self.core.ReadTimeout("timed out")
        return self._read(max_bytes)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._write(buffer)

    def close(self) -> None:
        self._wire.leave()

    def shut_down(self) -> None:
        """End what another thread waits for on this connection."""
        self._wire.leave()

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        self.close()
        raise self.core.ConnectError(_NO_TLS)


class _AsyncStream(_Stream):
    """An async stream with anyio's timeouts: with a timeout of 0 nothing succeeds."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if timeout is not None and timeout <= 0:
            raise self.core.ReadTimeout
        if self._wire.readable:
            await asyncio.sleep(0)
        elif not await self._wire.wait_async(timeout):
            raise self.core.ReadTimeout
        return self._read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if timeout is not None and timeout <= 0:
            raise self.core.WriteTimeout
        await asyncio.sleep(0)
        self._write(buffer)

    async def aclose(self) -> None:
        self._wire.leave()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> Any:
        await self.aclose()
        raise self.core.ConnectError(_NO_TLS)


_CORES = (httpcore, httpcore2)


def _kinds(core: ModuleType) -> list[tuple[Any, Any]]:
    """Return pairs of a connection pool class and the connection class that it creates."""
    return [(core.ConnectionPool, core.HTTPConnection), (core.AsyncConnectionPool, core.AsyncHTTPConnection)]


# As they are without a run: while one goes on, each of these names is bound to something that asks who calls.
_CREATE = {pool: pool.create_connection for core in _CORES for pool, _ in _kinds(core)}
_CAN_HANDLE = {kind: kind.can_handle_request for core in _CORES for _, kind in _kinds(core)}


class _Network:
    """The network of one run. connections: those that pools made in it."""

    def __init__(self, addresses: Addresses) -> None:
        self.addresses = addresses
        self.wires: set[Wire] = set()
        self.connections: set[Any] = set()

    # ---- what backends do

    def connect_tcp(self, core: ModuleType, host: str, port: int, timeout_s: float | None) -> Any:
        address = self._address(core, host, port)
        if timeout_s == 0:
            raise core.ConnectError(_NOT_NOW)
        if timeout_s is not None and timeout_s <= address.connect_s:
            _let_time_pass(timeout_s)
            raise core.ConnectTimeout("timed out")
        if address.connect_s > 0:
            _let_time_pass(address.connect_s)
        return _SyncStream(core, self._wire(address), (host, port))

    async def connect_tcp_async(self, core: ModuleType, host: str, port: int, timeout_s: float | None) -> Any:
        address = self._address(core, host, port)
        if timeout_s is not None and timeout_s <= address.connect_s:
            await asyncio.sleep(max(0.0, timeout_s))
            raise core.ConnectTimeout
        if math.isinf(address.connect_s):
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(address.connect_s)
        return _AsyncStream(core, self._wire(address), (host, port))

    def _address(self, core: ModuleType, host: str, port: int) -> Address:
        address = self.addresses.get((host, port))
        if address is None:
            places = ", ".join(f"{name}:{number}" for name, number in self.addresses)
            raise core.ConnectError(f"nothing is at {host}:{port} in this run, only at {places}")
        return address

    def _wire(self, address: Address) -> Wire:
        wire = Wire(address.listener)
        self.wires.add(wire)
        return wire

    def look_up(self, host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
        """Answer `socket.getaddrinfo` for the run's host names. Raises: socket.gaierror for any other name."""
        if not any(host == name for name, _ in self.addresses):
            raise socket.gaierror(socket.EAI_NONAME, f"no name or address {host} in this run")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]

    # ---- what pools do

    def note_created(self, connection: Any) -> Any:
        self.connections.add(connection)
        return connection

    def close(self) -> None:
        """Close the connections that the run leaves in pools, so that the pools drop them."""
        for wire in self.wires:
            wire.hang_up()
        for connection in self.connections:
            if hasattr(connection, "aclose"):
                closing = connection.aclose()
                with contextlib.suppress(StopIteration):
                    closing.send(None)  # to its end: our streams do not wait to be closed
                closing.close()
            else:
                connection.close()
        self.wires.clear()
        self.connections.clear()


def _let_time_pass(seconds: float) -> None:
    """Wait for virtual seconds as a read that times out does, so that ties have the same order."""
    never = threading.Lock()
    never.acquire()
    never.acquire(timeout=-1 if math.isinf(seconds) else seconds)


@contextlib.contextmanager
def virtual_network(clock: VirtualClock, addresses: Addresses) -> Iterator[None]:
    """Let a run's actors reach these addresses and no others during a block. For `VirtualClock.on_entry`."""
    network = _Network(addresses)
    with contextlib.ExitStack() as stack:
        stack.callback(network.close)
        stack.enter_context(clock.patched(socket, "getaddrinfo", network.look_up))
        for core in _CORES:
            for owner, name, virtual in _replacements(network, core):
                stack.enter_context(clock.patched(owner, name, virtual))
        yield


def _replacements(network: _Network, core: ModuleType) -> Iterator[tuple[Any, str, Any]]:
    """Yield owner, name and replacement for the methods that the run's actors call instead."""

    def connect(_: Any, host: str, port: int, timeout: float | None = None, *rest: Any, **named: Any) -> Any:
        return network.connect_tcp(core, host, port, timeout)

    def connect_async(_: Any, host: str, port: int, timeout: float | None = None, *rest: Any, **named: Any) -> Any:
        return network.connect_tcp_async(core, host, port, timeout)

    def no_unix_socket(*_: Any, **__: Any) -> Any:
        calling_actor().kernel.refuse("a Unix socket")

    yield core.SyncBackend, "connect_tcp", connect
    yield core.SyncBackend, "connect_unix_socket", no_unix_socket
    yield core.AnyIOBackend, "connect_tcp", connect_async
    yield core.AnyIOBackend, "connect_unix_socket", no_unix_socket
    for pool, kind in _kinds(core):
        create, can_handle = _CREATE[pool], _CAN_HANDLE[kind]
        yield pool, "create_connection", _wrap_create(network, create)
        yield kind, "can_handle_request", _wrap_can_handle(network, can_handle)


def _wrap_create(network: _Network, create: Any) -> Any:
    def create_connection(pool: Any, origin: Any) -> Any:
        return network.note_created(create(pool, origin))

    return create_connection


def _wrap_can_handle(network: _Network, can_handle: Any) -> Any:
    def can_handle_request(connection: Any, origin: Any) -> Any:
        return connection in network.connections and can_handle(connection, origin)

    return can_handle_request
