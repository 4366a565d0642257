"""HTTP clients that are not the lab's own: left alone without a run, seen and held in one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import httpcore2
import httpx
import httpx2
import pytest

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.clients.installing import LabAdapters
from docmind_lab.network.clients.watching import Passage, add_finder
from docmind_lab.network.taps import attach_taps

OWNERS = [
    (httpx.HTTPTransport, "handle_request"),
    (httpx.AsyncHTTPTransport, "handle_async_request"),
    (httpx2.HTTPTransport, "handle_request"),
    (httpx2.AsyncHTTPTransport, "handle_async_request"),
    (httpcore.SyncBackend, "connect_tcp"),
    (httpcore2.AnyIOBackend, "connect_tcp"),
    (httpcore.HTTPConnection, "handle_request"),
    (httpcore2.AsyncHTTPConnection, "can_handle_request"),
    (asyncio.BaseEventLoop, "run_in_executor"),
]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Watched:
    """A run that lets requests through as it was told to. active: whether the calling code belongs to it."""

    records = True
    is_simulated = False

    def __init__(self, **passage: Any) -> None:
        self.passage_options, self.active = passage, True
        self.attempts: list[Attempt] = []
        self.seen: list[tuple[str, str, bool]] = []

    def passage(self, method: str, url: str, is_retry: bool) -> Passage:
        self.seen.append((method, url, is_retry))
        call = LogicalCall("run", "llm/node/1.0.1", "node", "1.0.1", "llm", 7, self)
        return Passage(call, **self.passage_options)

    def attempt_started(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def attempt_ended(self, attempt: Attempt) -> None:
        pass

    def cut(self, attempt: Attempt, deadline: Deadline) -> RunCut:
        return RunCut(deadline.exceeded(attempt.call.role, "network"))

    def as_work(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


@pytest.fixture
def watching() -> Iterator[Callable[..., Watched]]:
    placed: list[LabAdapters] = []

    def begin(**passage: Any) -> Watched:
        watched = Watched(**passage)
        hooks = LabAdapters()
        hooks.install()
        hooks.at_removal(add_finder(lambda host: watched if watched.active else None))
        placed.append(hooks)
        return watched

    yield begin
    for hooks in reversed(placed):
        hooks.remove()


def answering(request, connection):
    connection.send(OK)


def trickling(request, connection):
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(1000):
        connection.send(b"x")
        connection.pause(0.05)


def test_everything_is_put_back() -> None:
    before = [vars(owner)[name] for owner, name in OWNERS]
    hooks = LabAdapters()
    hooks.install()
    assert all(vars(owner)[name] is not was for (owner, name), was in zip(OWNERS, before, strict=True))
    hooks.remove()
    assert [vars(owner)[name] for owner, name in OWNERS] == before


def test_what_somebody_else_has_replaced_since_is_left_to_them(monkeypatch) -> None:
    # Put back at the end of the test, whatever was left there.
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", vars(httpx.HTTPTransport)["handle_request"])
    hooks = LabAdapters()
    hooks.install()

    def theirs(transport, request):
        return httpx.Response(204)

    httpx.HTTPTransport.handle_request = theirs
    hooks.remove()
    assert vars(httpx.HTTPTransport)["handle_request"] is theirs


@pytest.mark.parametrize("web", [httpx, httpx2])
def test_a_request_of_no_run_goes_out_as_it_is(web, stub, watching) -> None:
    server = stub(answering)
    with web.Client() as client:
        client.get(f"{server.url}/plain", headers={"authorization": "Bearer k"})
        watched = watching()
        watched.active = False
        client.get(f"{server.url}/plain", headers={"authorization": "Bearer k"})
    one, other = server.requests
    assert one == other
    assert (watched.seen, server.connections) == ([], 1)


@pytest.mark.parametrize("web", [httpx, httpx2])
def test_a_request_of_a_run_is_an_attempt_of_its_call(web, stub, watching) -> None:
    server, watched = stub(answering), watching()
    with web.Client() as client:
        assert client.get(f"{server.url}/v1?a=b", headers={"x-stainless-retry-count": "1"}).text == "ok"
    (attempt,) = watched.attempts
    assert (attempt.outcome, attempt.status) == ("ok", 200)
    assert attempt.started_at <= attempt.acquired_at <= attempt.sent_at <= attempt.first_byte_at <= attempt.ended_at
    assert watched.seen == [("GET", f"{server.url}/v1?a=b", True)]


def test_a_connection_from_before_the_run_is_not_used_in_it(stub, watching) -> None:
    server = stub(answering)
    with httpx.Client() as client:
        client.get(server.url)
        watched = watching()
        client.get(server.url)
        client.get(server.url)
        assert server.connections == 2
        watched.active = False
        client.get(server.url)
    assert server.connections == 2, "afterwards any will do"


def test_a_tap_on_the_seam_is_told_what_a_guest_sends_and_gets(stub, watching) -> None:
    told: list[tuple[bytes, bytes]] = []

    class Listening:
        def sending(self, call):
            pass

        def ended(self, attempt, traffic):
            told.append((traffic.sent, b"".join(traffic.received)))

    server, _ = stub(answering), watching()
    with attach_taps(Listening()), httpx2.Client() as client:
        client.post(server.url, json={"a": 1})
        client.post(server.url, content=iter([b"in ", b"parts"]), headers={"content-length": "8"})
    assert told == [(b'{"a":1}', b"ok"), (b"", b"ok")]
    assert [request.body for request in server.requests] == [b'{"a":1}', b"in parts"]


def test_a_redirected_request_takes_no_key_with_it(stub, watching) -> None:
    server = stub(answering)
    watching(to=f"{server.url}/v1/chat/completions", headers={"x-docmind-of-a-test": "1"})
    secrets = {"authorization": "Bearer k", "api-key": "k", "cookie": "k", "x-title": "mine"}
    with httpx2.Client() as client:
        client.post("https://api.openai.com/v1/chat/completions", json={"a": 1}, headers=secrets)
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == b'{"a":1}'
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["x-docmind-of-a-test"] == "1"
    assert request.headers["x-title"] == "mine"
    assert not {"authorization", "api-key", "cookie"} & request.headers.keys()


@pytest.mark.wall
@pytest.mark.parametrize("web", [httpx, httpx2])
def test_a_trickled_body_is_cut_at_the_deadline_by_what_no_except_exception_catches(web, stub, watching) -> None:
    server = stub(trickling)
    deadline = Deadline.after(0.3)
    watched = watching(deadline=deadline)
    with web.Client(timeout=10.0) as client, pytest.raises(RunCut) as raised:
        client.get(server.url)
    # A read ends at the deadline to the millisecond; a loaded machine schedules the thread tens of them later.
    assert 0.0 <= time.monotonic() - deadline.at_s < 0.5
    assert raised.value.error.stop_reason == "deadline"
    assert [attempt.outcome for attempt in watched.attempts] == ["timeout"]
