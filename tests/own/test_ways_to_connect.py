"""Whatever a graph's code connects with in virtual time: it is held or refused by name, and no listener hears of it."""

from __future__ import annotations

import _socket
import asyncio
import ctypes
import ftplib
import functools
import gc
import http.client
import smtplib
import socket
import struct
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import aiohttp
import anyio
import curl_cffi
import grpc
import httpx
import httpx2
import pytest
import redis
import redis.asyncio
import requests
import urllib3
import websockets
import zmq
from curl_cffi import requests as curl_requests
from often import often
from own_runs import State, graph_of, simulated
from websockets.sync.client import connect as connect_sync

from docmind_lab.core.errors import NotSimulated

Way = Callable[[int], Any]


def awaiting(code: Callable[[int], Any]) -> Way:
    """Await what the code makes, within an event loop."""

    async def await_it(port: int) -> None:
        await code(port)

    return lambda port: asyncio.run(await_it(port))


def within(session: Callable[[], Any], use: Callable[[Any, int], Any]) -> Way:
    """Await what an open session of a client makes."""

    async def use_it(port: int) -> None:
        async with session() as opened:
            await use(opened, port)

    return lambda port: asyncio.run(use_it(port))


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def curl(port: int) -> Any:
    made = curl_cffi.Curl()
    made.setopt(curl_cffi.CurlOpt.URL, address(port).encode())
    made.setopt(curl_cffi.CurlOpt.WRITEFUNCTION, len)
    return made


def http_request(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    connection.getresponse()


def grpc_call(port: int) -> Any:
    return grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary("/a/b")


async def aio_sock_connect(port: int) -> None:
    with socket.socket() as made:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))


def aio_datagram(port: int) -> Any:
    loop = asyncio.get_running_loop()
    return loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=("127.0.0.1", port))


def c_socket(port: int, how: Callable[[Any, Any], Any], kind: int = socket.SOCK_STREAM) -> None:
    made = _socket.socket(_socket.AF_INET, kind)
    try:
        how(made, ("127.0.0.1", port))
    finally:
        made.close()


def by_ctypes(port: int) -> None:
    library = ctypes.CDLL(None)
    made = library.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton("127.0.0.1"))
    library.connect(made, address, len(address))
    library.close(made)


REFUSED: dict[str, Way] = {
    "asyncio.open_connection": awaiting(lambda port: asyncio.open_connection("127.0.0.1", port)),
    "asyncio sock_connect": awaiting(aio_sock_connect),
    "asyncio datagram": awaiting(aio_datagram),
    "asyncio start_server": awaiting(lambda port: asyncio.start_server(lambda *_: None, "127.0.0.1", 0)),
    "asyncio unix": awaiting(lambda port: asyncio.open_unix_connection("/nowhere")),
    "asyncio name": awaiting(lambda port: asyncio.get_running_loop().getaddrinfo("localhost", port)),
    "asyncio program": awaiting(lambda port: asyncio.create_subprocess_exec("true")),
    "anyio": awaiting(lambda port: anyio.connect_tcp("127.0.0.1", port)),
    "websockets, async": awaiting(lambda port: websockets.connect(f"ws://127.0.0.1:{port}/")),
    "websockets": lambda port: connect_sync(f"ws://127.0.0.1:{port}/"),
    "aiohttp": within(aiohttp.ClientSession, lambda session, port: session.get(address(port))),
    "aiohttp, web socket": within(aiohttp.ClientSession, lambda session, port: session.ws_connect(address(port))),
    "httpx": lambda port: httpx.get(address(port)),
    "httpx, async": within(httpx.AsyncClient, lambda client, port: client.get(address(port))),
    "httpx2": lambda port: httpx2.get(address(port)),
    "httpx, unix": lambda port: httpx.Client(transport=httpx.HTTPTransport(uds="/nowhere")).get("http://a.test/"),
    "requests": lambda port: requests.get(address(port), timeout=5),
    "urllib3": lambda port: urllib3.request("GET", address(port)),
    "urllib": lambda port: urllib.request.urlopen(address(port)),
    "http.client": http_request,
    "smtplib": lambda port: smtplib.SMTP("127.0.0.1", port),
    "ftplib": lambda port: ftplib.FTP().connect("127.0.0.1", port),
    "redis": lambda port: redis.Redis(port=port).ping(),
    "redis, async": awaiting(lambda port: redis.asyncio.Redis(port=port).ping()),
    "curl_cffi, easy": lambda port: curl(port).perform(),
    "curl_cffi, multi": awaiting(lambda port: curl_cffi.AsyncCurl().add_handle(curl(port))),
    "curl_cffi, requests": lambda port: curl_requests.get(address(port)),
    "curl_cffi, async": within(curl_requests.AsyncSession, lambda session, port: session.get(address(port))),
    "curl_cffi, web socket": lambda port: curl_requests.Session().ws_connect(f"ws://127.0.0.1:{port}/"),
    "grpc": lambda port: grpc_call(port)(b"x", timeout=2),
    "grpc, future": lambda port: grpc_call(port).future(b"x"),
    "grpc, stream": lambda port: list(grpc.insecure_channel(f"127.0.0.1:{port}").unary_stream("/a/b")(b"x")),
    "grpc, ready": lambda port: grpc.channel_ready_future(grpc.insecure_channel(f"127.0.0.1:{port}")).result(2),
    "grpc, async": awaiting(
        lambda port: grpc.aio.insecure_channel(f"127.0.0.1:{port}").unary_unary("/a/b")(b"x", timeout=2)
    ),
    "zmq": lambda port: zmq.Context().socket(zmq.REQ).connect(f"tcp://127.0.0.1:{port}"),
    "socket.create_connection": lambda port: socket.create_connection(("127.0.0.1", port)),
    "socket.connect": lambda port: socket.socket().connect(("127.0.0.1", port)),
    "socket.connect_ex": lambda port: socket.socket().connect_ex(("127.0.0.1", port)),
    "socket.sendto": lambda port: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", port)),
    "socket.sendmsg": lambda port: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("127.0.0.1", port)),
    "socket.getaddrinfo": lambda port: socket.getaddrinfo("localhost", port),
    "socket.gethostbyname": lambda port: socket.gethostbyname("localhost"),
    "socket.gethostbyaddr": lambda port: socket.gethostbyaddr("127.0.0.1"),
    "socket.getnameinfo": lambda port: socket.getnameinfo(("127.0.0.1", port), 0),
    "_socket.connect": lambda port: c_socket(port, lambda made, to: made.connect(to)),
    "_socket.connect_ex": lambda port: c_socket(port, lambda made, to: made.connect_ex(to)),
    "_socket.sendto": lambda port: c_socket(port, lambda made, to: made.sendto(b"x", to), socket.SOCK_DGRAM),
    "_socket.getaddrinfo": lambda port: _socket.getaddrinfo("localhost", port),
    "ctypes": by_ctypes,
    "ctypes, name": lambda port: ctypes.CDLL(None).gethostbyname(b"localhost"),
}


@pytest.fixture
def listener() -> Iterator[tuple[int, Callable[[], int]]]:
    """A port on which nobody answers, and how many connections and datagrams came to it."""
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        port: int = taken.getsockname()[1]
        datagrams.bind(("127.0.0.1", port))
        taken.setblocking(False)
        datagrams.setblocking(False)

        def arrivals() -> int:
            count = 0
            for take in (taken.accept, lambda: datagrams.recv(10)):
                with suppress(BlockingIOError):
                    while take():
                        count += 1
            return count

        yield port, arrivals


# What a refusal leaves open is collected here, where nobody minds.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
# Often: every sixth, from a socket to a process.
@pytest.mark.parametrize("way", often(REFUSED, *list(REFUSED)[::6]))
def test_a_connection_is_refused_by_name_past_every_fallback(way: str, listener: tuple[int, Callable[[], int]]) -> None:
    port, arrivals = listener

    def fetch(state: State) -> State:
        with suppress(Exception):  # as a fallback does
            REFUSED[way](port)
        return {}

    with pytest.raises(NotSimulated, match=r"in node fetch|outside every node") as refused:
        simulated(graph_of(fetch), decision_timeout_s=5.0)
    assert "wall" in str(refused.value)
    assert arrivals() == 0
    del refused
    gc.collect()


OF_JUPYTER = """
def hand_on(context):
    with context.socket(zmq.PUSH) as pipe:
        pipe.linger = 0
        pipe.connect("inproc://the-thread-that-prints")
"""


def test_what_a_thread_prints_in_a_notebook_is_no_connection() -> None:
    # Each thread that prints hands its text to one of Jupyter's, through a socket of its own within the process.
    jupyters: dict[str, Any] = {"__name__": "ipykernel.iostream", "zmq": zmq}
    exec(OF_JUPYTER, jupyters)
    with zmq.Context() as context:

        def fetch(state: State) -> State:
            printing = threading.Thread(target=jupyters["hand_on"], args=(context,))
            printing.start()
            printing.join()
            return {}

        simulated(graph_of(fetch), decision_timeout_s=5.0)


# ---- made on first use, and kept


@functools.cache
def loop_of_a_thread() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


@functools.cache
def idle_loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


async def waits() -> None:
    await asyncio.sleep(1.0)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "way",
    [
        lambda: asyncio.run_coroutine_threadsafe(waits(), loop_of_a_thread()).result(),
        lambda: idle_loop().run_until_complete(waits()),
    ],
    ids=["in a thread", "idle"],
)
def test_a_loop_that_is_made_once_and_kept_is_named_in_the_next_run_and_fails_no_run_quietly(way: Any) -> None:
    loop_of_a_thread.cache_clear()
    idle_loop.cache_clear()

    def fetch(state: State) -> State:
        with suppress(Exception):
            way()
        return {}

    with pytest.raises(NotSimulated, match=r"event loop made at .*test_ways_to_connect\.py:\d+.*make one in each run"):
        simulated(graph_of(fetch), alternatives="A,C", decision_timeout_s=5.0)
    gc.collect()
