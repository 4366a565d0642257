"""Hooks on HTTP clients: installed once, idle outside a deadline, taken away exactly (enforce.md 3)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import httpcore
import httpx
import httpx2
import pytest
import requests
import urllib3
from held_clients import ASYNC, BLOCKING, AsyncGet, with_httpx, with_requests
from held_graphs import QUICK, upstream_of, wait_until
from in_threads import in_threads
from langgraph.graph import START, StateGraph
from stub_server import StubConnection, StubRequest, StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.hooks import installed
from docmind_lab.core.errors import ConfigurationError, DeadlineExceeded, RunCut
from docmind_lab.core.holds import Hold, blocking_on, hold_scope

Stub = Callable[..., StubServer]
OWNERS = [
    (httpx.HTTPTransport, "handle_request"),
    (httpx2.AsyncHTTPTransport, "handle_async_request"),
    (httpcore.HTTPConnection, "handle_request"),
    (asyncio.BaseEventLoop, "run_in_executor"),
    (urllib3.connection.HTTPConnection, "connect"),
    (urllib3.connection.HTTPConnection, "request"),
    (aiohttp.ClientSession, "_request"),
]
# A machine of two shared cores pauses for this long at most, give or take what a test can allow itself.
PAUSE_S = 0.5


@pytest.fixture(autouse=True)
def _no_hooks_before() -> None:
    """A fixture of another module may have enforced something before any test of it."""
    dl.uninstall()


def test_installing_twice_is_installing_once_and_uninstalling_restores_every_method() -> None:
    before = [vars(owner).get(name) for owner, name in OWNERS]
    dl.install()
    once = [getattr(owner, name) for owner, name in OWNERS]
    dl.install()
    assert [getattr(owner, name) for owner, name in OWNERS] == once
    assert installed() == ("httpx", "requests", "aiohttp")
    dl.uninstall()
    assert [vars(owner).get(name) for owner, name in OWNERS] == before
    assert installed() == ()
    dl.uninstall()


def test_only_the_clients_that_are_named_are_hooked() -> None:
    dl.install(["requests"])
    assert installed() == ("requests",)
    # A deadline installs nothing that was not chosen.
    with dl.deadline(1):
        assert installed() == ("requests",)


def test_many_threads_may_install_at_once() -> None:
    before = vars(httpx.HTTPTransport)["handle_request"]
    in_threads(*[dl.install] * 16)
    dl.uninstall()
    assert vars(httpx.HTTPTransport)["handle_request"] is before


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        (["curl"], "clients: 'curl' is not known; the clients are httpx, requests, aiohttp"),
        ("httpx", r"clients is a list of names; write install\(\['httpx'\]\)"),
    ],
)
def test_a_client_that_is_not_known_is_refused(clients: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        dl.install(clients)
    with pytest.raises(ConfigurationError, match="object has no method send"):
        dl.exclude(object())


@pytest.mark.parametrize("get", BLOCKING)
def test_a_blocking_client_answers_as_ever_inside_a_deadline_and_outside(get: Callable[[str], str], stub: Stub) -> None:
    _, url = upstream_of(stub)
    dl.install()
    assert get(f"{url}/ok") == "ok"
    with dl.deadline(20):
        assert get(f"{url}/ok") == "ok"


@pytest.mark.wall
@pytest.mark.parametrize("path", ["/hang", "/trickle"])
@pytest.mark.parametrize("get", BLOCKING)
def test_a_blocking_client_is_cut_once_and_not_tried_again(get: Callable[[str], str], path: str, stub: Stub) -> None:
    server = stub(upstream_of(stub)[0])
    begun_at = time.monotonic()

    def try_until_it_works() -> None:
        with dl.deadline(0.3):
            while True:
                with contextlib.suppress(Exception):
                    get(f"{server.url}{path}")
                    return

    with pytest.raises(DeadlineExceeded):
        try_until_it_works()
    assert time.monotonic() - begun_at < 0.3 + PAUSE_S
    assert len(server.requests) == 1


@pytest.mark.wall
@pytest.mark.parametrize("path", ["/hang", "/trickle"])
@pytest.mark.parametrize("get", ASYNC)
def test_an_async_client_is_cut(get: AsyncGet, path: str, stub: Stub) -> None:
    upstream, url = upstream_of(stub)

    async def held() -> None:
        async with dl.deadline(0.3):
            await get(url + path)

    begun_at = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        asyncio.run(held())
    assert time.monotonic() - begun_at < 0.3 + PAUSE_S
    wait_until(lambda: upstream.open == 0)


@pytest.mark.wall
def test_a_body_that_aiohttp_reads_at_the_deadline_is_cut_and_no_error_of_the_graph(stub: Stub) -> None:
    _, url = upstream_of(stub)

    async def ask(state: dict[str, Any]) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/trickle") as response:
            with contextlib.suppress(TimeoutError):
                await response.read()
        return {}

    graph: Any = StateGraph(dict).add_node(ask).add_edge(START, "ask").compile()
    assert asyncio.run(dl.enforce(graph, 0.3, "A").ainvoke({})).outcome == "timed_out"


@pytest.mark.wall
@pytest.mark.parametrize("make", [lambda: httpx.Client(trust_env=False), lambda: requests.Session()])
def test_a_client_that_is_excluded_is_not_held(make: Callable[[], Any], stub: Stub) -> None:
    def slow(request: StubRequest, connection: StubConnection) -> None:
        connection.pause(0.4)
        connection.send(QUICK)

    url = stub(slow).url
    with make() as client:
        dl.exclude(client)
        with dl.deadline(0.1):
            assert client.get(url).text == "ok"
            assert dl.remaining_s() is not None


@pytest.mark.wall
def test_a_connection_that_was_made_outside_a_deadline_is_not_used_within_one(stub: Stub) -> None:
    upstream, url = upstream_of(stub)
    dl.install()
    with httpx.Client(timeout=None, trust_env=False) as client:
        assert client.get(f"{url}/ok").text == "ok"
        with pytest.raises(DeadlineExceeded), dl.deadline(0.3):
            client.get(f"{url}/trickle")
    wait_until(lambda: upstream.open == 0)


def test_requests_that_wait_for_one_connection_are_assigned_it_by_each_other(stub: Stub) -> None:
    """A pool assigns connections in the code of whichever request ends, held or not."""
    _, url = upstream_of(stub)
    dl.install()
    failures: list[BaseException] = []
    limits = httpx.Limits(max_connections=2, max_keepalive_connections=2)
    with httpx.Client(timeout=None, trust_env=False, limits=limits) as client:

        def ask(number: int) -> None:
            try:
                for _ in range(20):
                    if number % 2:
                        with dl.deadline(30):
                            assert client.get(f"{url}/ok").text == "ok"
                    else:
                        assert client.get(f"{url}/ok").text == "ok"
            except httpx.ReadError:
                # Without hooks too: httpcore closes a connection for one request that another has just been given.
                return
            except BaseException as error:  # noqa: BLE001 - shown by the test
                failures.append(error)

        in_threads(*[functools.partial(ask, number) for number in range(8)])
    assert failures == []


def test_a_wait_that_is_over_is_not_ended_by_a_later_cancellation() -> None:
    ended: list[str] = []
    hold = Hold(None)
    with hold_scope(hold):
        with blocking_on(lambda: ended.append("over")):
            pass
        with blocking_on(lambda: ended.append("under way")):
            hold.cancel()
    assert ended == ["under way"]


def test_a_cancelled_hold_refuses_what_begins_in_it_and_inside_it() -> None:
    outer, inner = Hold(None), Hold(None)
    with hold_scope(outer), hold_scope(inner):
        outer.cancel()
        with pytest.raises(RunCut, match="cancelled by its caller"):
            inner.refuse_if_over()


# ---- beside another library's hooks


class Tracer:
    """Another library that replaces the same method, as instrumentation does, and puts back what it had found."""

    def __init__(self, owner: Any, name: str) -> None:
        self.owner, self.name, self.calls = owner, name, 0

    def install(self) -> None:
        self.before = before = vars(self.owner)[self.name]

        def traced(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            return before(*arguments, **options)

        setattr(self.owner, self.name, traced)

    def uninstall(self) -> None:
        setattr(self.owner, self.name, self.before)


def is_held(stub: Stub, client: Callable[[str], str]) -> bool:
    """Whether a deadline cuts a request that nothing else would end in time."""

    def late(request: StubRequest, connection: StubConnection) -> None:
        connection.pause(3)
        raise OSError("it hangs up")

    url = stub(late).url
    begun_s = time.monotonic()
    with contextlib.suppress(DeadlineExceeded, OSError, httpx.HTTPError):
        with dl.deadline(0.1):
            client(url)
    return time.monotonic() - begun_s < 2


HOOKED = [
    (with_httpx, httpx.HTTPTransport, "handle_request"),
    (with_requests, urllib3.connection.HTTPConnection, "request"),
]


@pytest.mark.wall
@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("taken_off_first", ["ours", "theirs"])
@pytest.mark.parametrize(("client", "owner", "name"), HOOKED)
def test_hooks_come_off_in_any_order_beside_another_librarys(
    stub: Stub, client: Callable[[str], str], owner: Any, name: str, ours_first: bool, taken_off_first: str
) -> None:
    original, tracer = vars(owner)[name], Tracer(owner, name)
    came_and_left_first = not ours_first and taken_off_first == "theirs"
    try:
        for install in (dl.install, tracer.install) if ours_first else (tracer.install, dl.install):
            install()
        assert is_held(stub, client)
        assert tracer.calls
        for take_off in (
            (dl.uninstall, tracer.uninstall) if taken_off_first == "ours" else (tracer.uninstall, dl.uninstall)
        ):
            take_off()
            if came_and_left_first and take_off == tracer.uninstall:
                assert is_held(stub, client), "though it has put back what it had found"
        assert not came_and_left_first or vars(owner)[name] is original
        assert client(stub(lambda request, connection: connection.send(QUICK)).url) == "ok"
        # A deadline installs them anew, once, whatever is still there.
        assert is_held(stub, client)
        dl.uninstall()
        assert client(stub(lambda request, connection: connection.send(QUICK)).url) == "ok"
    finally:
        setattr(owner, name, original)
