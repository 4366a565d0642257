"""HTTP clients that are not the lab's own: left alone without a run, seen and held in one."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import httpx2
import pytest
from watched_calls import Watcher

from docmind_lab.core.deadlines import Deadline
from docmind_lab.core.errors import RunCut
from docmind_lab.core.holds import Hold, hold_scope
from docmind_lab.network.attempts import Attempt
from docmind_lab.network.clients.held_socket import _HeldFile
from docmind_lab.network.clients.http_client import _is_in_memory
from docmind_lab.network.clients.installing import LabAdapters
from docmind_lab.network.clients.watching import Passage, add_finder
from docmind_lab.network.taps import attach_taps

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Watched(Watcher):
    """A run that lets requests through as it was told to. active: whether the calling code belongs to it."""

    records = True
    is_simulated = False

    def __init__(self, **passage: Any) -> None:
        super().__init__()
        self.passage_options, self.active = passage, True
        self.seen: list[tuple[str, str, bool]] = []

    def passage(self, method: str, url: str, is_retry: bool) -> Passage:
        self.seen.append((method, url, is_retry))
        return Passage(self.call(), **self.passage_options)

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
    (attempt,) = watched.started
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


# ---- http.client, which sends itself


def in_pieces(read: Callable[[], bytes]) -> bytes:
    return b"".join(iter(read, b""))


def into_a_buffer(response: http.client.HTTPResponse) -> bytes:
    buffer = bytearray(100)
    return bytes(buffer[: response.readinto(buffer)]) + response.read()


READINGS: dict[str, Callable[[http.client.HTTPResponse], bytes]] = {
    "read": lambda response: response.read(),
    "read1": lambda response: in_pieces(response.read1),
    "readinto": into_a_buffer,
    "readline": lambda response: in_pieces(response.readline),
    "peek": lambda response: response.peek()[:0] + response.read(),
}
BODIES = {
    "of a length": b"content-length: 9\r\n\r\nbody\nline",
    "in chunks": b"transfer-encoding: chunked\r\n\r\n5\r\nbody\n\r\n4\r\nline\r\n0\r\n\r\n",
    "to the end": b"connection: close\r\n\r\nbody\nline",
}


@pytest.fixture
def noted(stub, watching) -> Iterator[tuple[Callable[[bytes], Any], Watched, list[bytes]]]:
    """A response to GET of http.client with these headers and body, its run, and what taps have received."""
    received: list[bytes] = []

    class Listening:
        def sending(self, call):
            pass

        def ended(self, attempt, traffic):
            received.append(b"".join(traffic.received))

    def response_of(rest: bytes) -> http.client.HTTPResponse:
        def answer(request, connection):
            connection.send(b"HTTP/1.1 200 OK\r\n" + rest)
            connection.socket.shutdown(socket.SHUT_WR)

        connection = http.client.HTTPConnection("127.0.0.1", stub(answer).port, timeout=10)
        closing.callback(connection.close)
        connection.request("GET", "/")
        return connection.getresponse()

    watched = watching()
    with contextlib.ExitStack() as closing, attach_taps(Listening()):
        yield response_of, watched, received


@pytest.mark.parametrize("rest", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("read", READINGS.values(), ids=READINGS)
def test_a_response_is_noted_in_whatever_way_it_is_read(read, rest, noted) -> None:
    response_of, watched, received = noted
    assert read(response_of(rest)) == b"body\nline"
    (attempt,) = watched.started
    assert (attempt.outcome, attempt.status, received) == ("ok", 200, [b"body\nline"])
    assert attempt.sent_at <= attempt.first_byte_at <= attempt.ended_at


@pytest.mark.parametrize(
    ("rest", "outcome", "error"),
    [
        (b"content-length: 9\r\n\r\nbody", "cancelled", ""),
        (b"content-length: x\r\n\r\n", "error", "RemoteProtocolError"),
    ],
    ids=["left", "no HTTP"],
)
def test_a_response_that_is_not_read_to_its_end_is_no_answer(rest, outcome, error, noted) -> None:
    response_of, watched, _ = noted
    with response_of(rest):
        pass
    (attempt,) = watched.started
    assert (attempt.outcome, attempt.error_type) == (outcome, error)


@pytest.mark.parametrize("is_simulated", [True, False])
def test_a_connection_of_another_run_is_not_used(is_simulated, stub, watching) -> None:
    server, watched = stub(answering), watching()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        watched.is_simulated = not is_simulated
        connection.connect()
        watched.is_simulated = is_simulated
        connection.request("GET", "/")
        assert _is_in_memory(connection) is is_simulated
        assert connection.getresponse().read() == b"ok"


class SocketThatTimesOut:
    """A socket of http.client whose first read ends by its timeout, when its hold has been released."""

    def __init__(self, hold: Hold, timeout_s: float | None) -> None:
        self.hold, self.timeout_s = hold, timeout_s
        self.timeouts_of_reads: list[float | None] = []

    def gettimeout(self) -> float | None:
        return self.timeout_s

    def settimeout(self, timeout_s: float | None) -> None:
        self.timeout_s = timeout_s

    def makefile(self, mode: str, buffering: int) -> Any:
        return self

    def close(self) -> None:
        pass

    def readinto(self, buffer: Any) -> int:
        self.timeouts_of_reads.append(self.timeout_s)
        if len(self.timeouts_of_reads) == 1:
            self.hold.release()
            raise TimeoutError
        buffer[:2] = b"ok"
        return 2


@pytest.mark.parametrize(("own_s", "rest_s"), [(None, None), (60.0, 30.0)], ids=["without a timeout", "with its own"])
def test_a_read_goes_on_when_the_deadline_that_has_bounded_it_is_lifted(own_s, rest_s) -> None:
    hold = Hold(Deadline.after(30.0))
    connection = SocketThatTimesOut(hold, own_s)
    with hold_scope(hold):
        assert _HeldFile(connection, None).readinto(bytearray(8)) == 2
    assert connection.timeouts_of_reads == [pytest.approx(30.0, abs=5), rest_s and pytest.approx(rest_s, abs=5)]
    assert connection.timeout_s == own_s


def test_a_timeout_of_its_own_ends_a_read_whose_deadline_is_lifted_meanwhile() -> None:
    hold = Hold(Deadline.after(60.0))
    with hold_scope(hold), pytest.raises(TimeoutError):
        _HeldFile(SocketThatTimesOut(hold, 10.0), None).readinto(bytearray(8))
