"""HTTP clients that are not the lab's own: left alone without a run, seen and held in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.network.attempts import Attempt, LogicalCall
from docmind_lab.network.clients.installing import LabAdapters
from docmind_lab.network.clients.watching import Passage, add_finder
from docmind_lab.network.taps import attach_taps

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


def test_a_tap_on_the_seam_is_told_what_a_client_of_others_sends_and_gets(stub, watching) -> None:
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
