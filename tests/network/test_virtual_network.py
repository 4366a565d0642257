"""The network without sockets: what httpcore and httpcore2 meet on it, and what it leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2
import pytest

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import NotSimulated
from docmind_lab.network.exchange import library_errors
from docmind_lab.network.streams import SyncBackend
from docmind_lab.network.virtual_network import Address, virtual_network
from docmind_lab.network.virtual_wire import Wire
from docmind_lab.virtual_time import VirtualClock

REPLY = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
HEAD, BODY = REPLY[:-5], REPLY[-5:]
both_cores = pytest.mark.parametrize("core", [httpcore, httpcore2], ids=["httpcore", "httpcore2"])


class Answering:
    """The server's end of a wire: sends pieces, each some virtual seconds after the request's first bytes."""

    def __init__(self, clock: VirtualClock, pieces: list[tuple[float, bytes]], wire: Wire) -> None:
        self.clock, self.pieces, self.wire = clock, pieces, wire
        self.heard, self.left_at = b"", math.nan

    def received(self, data: bytes) -> None:
        self.heard += data
        for after_s, data in self.pieces:
            act = self.wire.hang_up if data == b"" else lambda data=data: self.wire.send(data)
            self.clock.call_at(self.clock.now() + after_s, act)

    def client_left(self) -> None:
        self.left_at = self.clock.now()


class Network:
    """A clock whose runs have one server at a.test:80, and one at never.test:80 that takes no connection in."""

    def __init__(self, *pieces: tuple[float, bytes], connect_s: float = 0.0) -> None:
        self.ends: list[Answering] = []
        self.pieces, self.connect_s = list(pieces), connect_s
        self.clock = VirtualClock(on_entry=[self.entry])

    @contextlib.contextmanager
    def entry(self, clock: VirtualClock) -> Iterator[None]:
        address = Address(self.accept, self.connect_s)
        with virtual_network(clock, {("a.test", 80): address, ("never.test", 80): Address(self.accept, math.inf)}):
            yield

    def accept(self, wire: Wire) -> Answering:
        self.ends.append(Answering(self.clock, self.pieces, wire))
        return self.ends[-1]

    def timed(self, function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
        """What a function returns or raises, and virtual seconds until then."""

        def run() -> tuple[Any, float]:
            begun_at = time.monotonic()
            try:
                result = function(*args)
            except Exception as error:  # noqa: BLE001 - the kind is what is tested
                result = type(error)
            return result, time.monotonic() - begun_at

        return self.clock.run(run)


def get(client: Any, url: str = "http://a.test/", **timeouts: float) -> bytes:
    return client.request("GET", url, extensions={"timeout": timeouts}).content


async def get_async(client: Any, url: str = "http://a.test/", **timeouts: float) -> bytes:
    return (await client.request("GET", url, extensions={"timeout": timeouts})).content


def both_ways(core: Any) -> Iterator[Callable[..., bytes]]:
    """`get` by a pool that was built before the run: blocking, and async on a loop of the run."""
    sync_pool, async_pool = core.ConnectionPool(), core.AsyncConnectionPool()
    yield lambda *args, **timeouts: get(sync_pool, *args, **timeouts)
    yield lambda *args, **timeouts: asyncio.run(get_async(async_pool, *args, **timeouts))


@both_cores
def test_a_pool_built_before_the_run_gets_an_answer_in_virtual_time(core):
    for ask in both_ways(core):
        assert Network((1.5, REPLY)).timed(ask) == (b"hello", 1.5)


@both_cores
def test_a_timeout_is_of_each_read(core):
    for ask in both_ways(core):
        silent = Network((0.6, REPLY))
        assert silent.timed(lambda ask=ask: ask(read=0.5)) == (core.ReadTimeout, 0.5)
        assert silent.ends[0].left_at == 0.5
        trickling = Network((0.4, HEAD), (0.8, BODY[:2]), (1.2, BODY[2:]))
        assert trickling.timed(lambda ask=ask: ask(read=0.5)) == (b"hello", pytest.approx(1.2))


@both_cores
def test_what_comes_exactly_at_the_timeout_is_late(core):
    for ask in both_ways(core):
        assert Network((0.5, REPLY)).timed(lambda ask=ask: ask(read=0.5)) == (core.ReadTimeout, 0.5)
        assert Network((0.5, REPLY)).timed(lambda ask=ask: ask(read=0.5001)) == (b"hello", 0.5)
        slow = Network((0.0, REPLY), connect_s=0.5)
        assert slow.timed(lambda ask=ask: ask(connect=0.5)) == (core.ConnectTimeout, 0.5)
        assert slow.timed(lambda ask=ask: ask(connect=0.6))[0] == b"hello"


@both_cores
def test_a_server_that_takes_nobody_in_is_a_connect_timeout(core):
    for ask in both_ways(core):
        network = Network()
        assert network.timed(lambda ask=ask: ask("http://never.test/", connect=2.0)) == (core.ConnectTimeout, 2.0)
        assert network.ends == []


@both_cores
def test_what_is_not_registered_is_refused_at_once(core):
    for ask in both_ways(core):
        assert Network().timed(lambda ask=ask: ask("http://127.0.0.1:9/")) == (core.ConnectError, 0.0)
        assert Network().timed(lambda ask=ask: ask("https://a.test:80/")) == (core.ConnectError, 0.0)
    in_a_file = core.ConnectionPool(uds="/run/some.sock")
    with pytest.raises(NotSimulated, match="a Unix socket has no virtual time"):
        Network().timed(get, in_a_file)


@both_cores
def test_no_time_at_all_is_what_it_is_on_a_socket(core):
    blocking, asynchronous = both_ways(core)
    assert Network((0.1, REPLY)).timed(lambda: blocking(read=0)) == (core.ReadError, 0.0)
    assert Network((0.1, REPLY)).timed(lambda: blocking(connect=0)) == (core.ConnectError, 0.0)
    assert Network((0.1, REPLY)).timed(lambda: asynchronous(read=0)) == (core.ReadTimeout, 0.0)
    assert Network((0.1, REPLY)).timed(lambda: asynchronous(connect=0)) == (core.ConnectTimeout, 0.0)


@both_cores
def test_a_server_that_hangs_up_is_seen_where_it_does(core):
    for ask in both_ways(core):
        assert Network((0.3, b"")).timed(ask) == (core.RemoteProtocolError, 0.3)
        assert Network((0.1, REPLY[:-2]), (0.3, b"")).timed(ask) == (core.RemoteProtocolError, 0.3)


@both_cores
def test_a_connection_is_kept_alive_and_dropped_by_the_pool_when_the_server_has_hung_up(core):
    pool = core.ConnectionPool()
    kept = Network((0.1, REPLY))
    assert kept.timed(lambda: get(pool) + get(pool)) == (b"hellohello", pytest.approx(0.2))
    assert len(kept.ends) == 1
    closed = Network((0.1, REPLY), (0.2, b""))

    def with_a_pause() -> bytes:
        first = get(pool)
        time.sleep(1.0)
        return first + get(pool)

    assert closed.timed(with_a_pause)[0] == b"hellohello"
    assert len(closed.ends) == 2


@both_cores
def test_a_pool_that_is_full_waits_in_virtual_time(core):
    pool = core.ConnectionPool(max_connections=1)
    network = Network((2.0, REPLY))

    def two() -> Any:
        threading.Thread(target=get, args=(pool,)).start()
        time.sleep(0.25)  # until it has the only connection
        return get(pool, pool=1.5)

    assert network.timed(two) == (core.PoolTimeout, 1.75)


def test_a_cancelled_task_closes_its_connection_at_that_instant():
    network = Network((5.0, REPLY))

    async def main() -> None:
        async with httpcore2.AsyncConnectionPool() as pool:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.25):
                    await get_async(pool)

    network.clock.run_async(main)
    assert network.ends[0].left_at == 1.25


def test_tasks_of_one_loop_wait_side_by_side():
    network = Network((1.0, REPLY))

    async def main() -> tuple[list[bytes], float]:
        async with httpcore.AsyncConnectionPool() as pool:
            found = await asyncio.gather(*(get_async(pool) for _ in range(3)))
            return found, time.monotonic()

    assert network.clock.run_async(main) == ([b"hello"] * 3, 1.0)
    assert len(network.ends) == 3


@both_cores
def test_names_are_known_without_asking_anybody(core):
    network = Network((1.0, REPLY))

    def connect(host: str) -> Any:
        # Under a deadline the seam looks names up itself, in a thread.
        with deadline_scope(Deadline.after(3.0)):
            return SyncBackend(core).connect_tcp(host, 80).get_extra_info("server_addr")

    assert network.timed(connect, "a.test") == (("a.test", 80), 0.0)
    assert network.timed(connect, "b.test") == (core.ConnectError, 0.0)
    with pytest.raises(OSError, match="nowhere"):
        network.clock.run(lambda: socket.create_connection(("nowhere.test", 80)))


@pytest.mark.parametrize(("core", "web"), [(httpcore, httpx), (httpcore2, httpx2)])
def test_an_error_of_a_core_is_that_of_its_own_client(core, web):
    for name in ("ReadTimeout", "ConnectError", "RemoteProtocolError"):
        with pytest.raises(getattr(web, name)), library_errors():
            raise getattr(core, name)


# ---- what a run leaves behind


@both_cores
def test_a_pool_goes_from_run_to_run_and_takes_no_connection_along(core):
    pool = core.ConnectionPool(max_connections=1)
    for _ in range(3):
        network = Network((0.1, REPLY))
        assert network.timed(get, pool)[0] == b"hello"
        assert len(network.ends) == 1


@both_cores
def test_a_request_that_hangs_at_the_end_of_a_run_gives_its_place_in_the_pool_back(core):
    sync_pool, async_pool = core.ConnectionPool(max_connections=1), core.AsyncConnectionPool(max_connections=1)

    def leave_both_hanging() -> None:
        threading.Thread(target=get, args=(sync_pool,)).start()
        threading.Thread(target=run_a_loop_for_ever).start()

    def run_a_loop_for_ever() -> None:
        # Its task is closed with the run, when no loop is there any more to close a connection on.
        loop = asyncio.new_event_loop()
        task = loop.create_task(get_async(async_pool))
        loop.run_forever()
        del task

    for _ in range(2):
        silent = Network()
        silent.clock.run(leave_both_hanging)
        assert len(silent.ends) == 2
    assert Network((0.1, REPLY)).timed(lambda: get(sync_pool, pool=0.5))[0] == b"hello"
    assert Network((0.1, REPLY)).timed(lambda: asyncio.run(get_async(async_pool, pool=0.5)))[0] == b"hello"


@both_cores
def test_sockets_of_real_time_stay_with_real_time(core, stub):
    server = stub(lambda request, connection: connection.send(REPLY))
    clock = VirtualClock(on_entry=[lambda clock: virtual_network(clock, {(server.host, server.port): address})])
    ends: list[Answering] = []

    def accept(wire: Wire) -> Answering:
        ends.append(Answering(clock, [(7.0, REPLY)], wire))
        return ends[-1]

    address = Address(accept)
    with core.ConnectionPool() as pool:
        assert get(pool, server.url) == b"hello"
        assert clock.run(get, pool, server.url) == b"hello"
        assert (clock.returned_at_s, len(server.requests), len(ends)) == (7.0, 1, 1)
        assert get(pool, server.url) == b"hello"
    assert (len(server.requests), server.connections) == (2, 1), "its idle connection was still there"


def test_every_name_is_what_it_was_when_the_run_is_over():
    owners = [(core.SyncBackend, "connect_tcp") for core in (httpcore, httpcore2)]
    owners += [(core.AnyIOBackend, "connect_unix_socket") for core in (httpcore, httpcore2)]
    owners += [(core.ConnectionPool, "create_connection") for core in (httpcore, httpcore2)]
    owners += [(core.AsyncHTTPConnection, "can_handle_request") for core in (httpcore, httpcore2)]
    owners += [(socket, "getaddrinfo")]
    before = [vars(owner)[name] for owner, name in owners]

    def seen() -> list[Any]:
        return [vars(owner)[name] for owner, name in owners]

    network = Network((0.1, REPLY))
    assert all(now is not real for now, real in zip(network.clock.run(seen), before, strict=True))
    assert seen() == before
