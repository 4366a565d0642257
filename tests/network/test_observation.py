"""What the seam sees: attempts, their instants and how they end; which requests it touches, and which it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from typing import Any

import openai
import pytest
from chat_replies import DONE, EVENT, MESSAGES, SILENCE_S, at_once, reply, silent
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from watched_calls import Watcher

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import EndpointRefused
from docmind_lab.core.settings import Settings
from docmind_lab.network import Attempt, HttpClients, call_scope
from docmind_lab.network.attempts import HEADER_PREFIX
from docmind_lab.services.plan import ServiceRequest


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


def failing_twice(status: int):
    answers = [status, status]

    def answer(request, connection) -> None:
        if answers:
            # retry-after-ms keeps the client's wait to a millisecond.
            connection.send(reply(b"{}", answers.pop(), "retry-after-ms: 1\r\n"))
        elif json.loads(request.body).get("stream"):
            connection.send(reply(EVENT + DONE, content_type="text/event-stream"))
        else:
            connection.send(reply())

    return answer


@contextlib.contextmanager
def openai_client(url: str, **options: Any):
    http = HttpClients(**options.pop("http", {}))
    options = {"max_retries": 0, "timeout": None} | options
    yield openai.OpenAI(base_url=f"{url}/v1", api_key="unused", http_client=http.openai, **options)
    http.close()


def complete(client: openai.OpenAI, **options: Any) -> Any:
    return client.chat.completions.create(model="m", messages=MESSAGES, **options)


# ---- attempts


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [500, 429])
def test_each_retry_of_the_client_is_an_attempt_of_its_own_with_a_rising_number(status, stream, stub, watcher):
    server = stub(failing_twice(status))
    with openai_client(server.url, max_retries=2) as client, call_scope(watcher.call()):
        answer = complete(client, stream=stream)
        if stream:
            list(answer)
    assert [attempt.number for attempt in watcher.started] == [1, 2, 3]
    assert watcher.outcomes == ["error", "error", "ok"]
    assert [attempt.status for attempt in watcher.started] == [status, status, 200]
    assert [attempt.error_type for attempt in watcher.started] == [f"HTTP {status}", f"HTTP {status}", ""]
    assert [request.headers["x-docmind-attempt"] for request in server.requests] == ["1", "2", "3"]


def test_attempts_of_two_calls_are_counted_apart(stub, watcher):
    with openai_client(stub(at_once).url) as client:
        for call_id in ("a", "b", "b"):
            with call_scope(watcher.call(call_id=call_id)):
                complete(client)
    assert [(attempt.call.call_id, attempt.number) for attempt in watcher.started] == [("a", 1), ("b", 1), ("b", 1)]


@pytest.mark.parametrize("over_an_open_connection", [False, True])
def test_instants_are_in_order(over_an_open_connection, stub, watcher):
    with openai_client(stub(at_once).url) as client:
        if over_an_open_connection:
            complete(client)
        with call_scope(watcher.call()):
            complete(client)
    (attempt,) = watcher.ended
    instants = [attempt.started_at, attempt.acquired_at, attempt.sent_at, attempt.first_byte_at, attempt.ended_at]
    assert None not in instants
    assert instants == sorted(instants)


# ---- what the attempt was allowed


@pytest.mark.parametrize(
    ("timeout_s", "deadline_s", "from_deadline", "allowed_s", "capped"),
    [
        (None, None, False, float("inf"), False),
        (7.0, None, False, 7.0, False),
        (7.0, None, True, 7.0, True),
        (7.0, 30.0, False, 7.0, True),
        (30.0, 7.0, False, 7.0, True),
    ],
)
def test_an_attempt_says_what_it_was_allowed_and_whether_a_deadline_had_a_part_in_it(
    timeout_s, deadline_s, from_deadline, allowed_s, capped, stub, watcher
):
    deadline = None if deadline_s is None else Deadline.after(deadline_s)
    call = watcher.call(cap_from_deadline=from_deadline)
    with openai_client(stub(at_once).url, timeout=timeout_s) as client, call_scope(call), deadline_scope(deadline):
        complete(client)
    (attempt,) = watcher.ended
    # What is left of the deadline when the request is made: seconds less, on the slowest of machines.
    assert attempt.timeout_s == allowed_s or allowed_s - 5.0 < attempt.timeout_s < allowed_s
    assert attempt.capped is capped
    assert attempt.deadline is deadline


def test_an_attempt_of_which_nobody_says_so_is_not_capped(watcher):
    assert not Attempt(watcher.call(), 1, 0.0).capped


# ---- how they end


def hang_up(request, connection) -> None:
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    raise OSError


# What the server does (nothing: it refuses connections), the deadline, the attempt's outcome and error, and whether
# the request was sent.
ENDS = [
    pytest.param(
        silent,
        lambda: Deadline.after(0.2),
        "timeout",
        "ReadTimeout",
        True,
        id="a deadline cuts it",
        marks=pytest.mark.wall,
    ),
    pytest.param(
        at_once, lambda: Deadline.after(1.0).child(2.0), "timeout", "ConnectTimeout", False, id="no budget is left"
    ),
    pytest.param(None, lambda: None, "error", "ConnectError", False, id="the connection is refused"),
    pytest.param(hang_up, lambda: None, "error", "RemoteProtocolError", True, id="the server hangs up"),
]


@pytest.mark.parametrize(("answer", "deadline", "outcome", "error_type", "was_sent"), ENDS)
def test_an_attempt_that_fails_says_how_and_whether_it_was_sent(
    answer, deadline, outcome, error_type, was_sent, stub, watcher
):
    server = stub(answer or at_once)
    if answer is None:
        server.close()
    with (
        openai_client(server.url) as client,
        call_scope(watcher.call()),
        deadline_scope(deadline()),
        pytest.raises(openai.APITimeoutError if outcome == "timeout" else openai.APIConnectionError),
    ):
        complete(client)
    (attempt,) = watcher.ended
    assert (watcher.outcomes, attempt.error_type, attempt.sent_at is not None) == ([outcome], error_type, was_sent)
    assert (attempt.first_byte_at is None) == (answer is not hang_up)


def test_a_cancelled_async_attempt_is_cancelled(stub, watcher):
    server = stub(silent)

    async def main() -> None:
        http = HttpClients()
        client = openai.AsyncOpenAI(base_url=server.url, api_key="unused", http_client=http.openai_async, timeout=None)
        with call_scope(watcher.call()):
            task = asyncio.create_task(client.chat.completions.create(model="m", messages=MESSAGES))
        while not server.requests:
            await asyncio.sleep(0.002)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await http.aclose()

    asyncio.run(main())
    assert watcher.outcomes == ["cancelled"]
    assert len(watcher.ended) == 1


def streaming(*parts: bytes, rest_s: float = 0.0):
    """Sends parts of an event stream without saying its length, and stays open for a while."""

    def answer(request, connection) -> None:
        connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for part in parts:
            connection.send(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        connection.pause(rest_s)
        connection.send(b"0\r\n\r\n")

    return answer


def test_a_stream_read_to_its_end_is_complete(stub, watcher):
    with openai_client(stub(streaming(EVENT, EVENT, DONE)).url) as client, call_scope(watcher.call()):
        assert len(list(complete(client, stream=True))) == 2
    assert watcher.outcomes == ["ok"]


@pytest.mark.parametrize("last", [(EVENT, DONE), (EVENT + DONE,), (EVENT + DONE[:8], DONE[8:])])
def test_a_stream_read_up_to_its_end_marker_is_complete_even_when_it_is_closed_there(last, stub, watcher):
    http = HttpClients()
    server = stub(streaming(*last, rest_s=SILENCE_S))
    with call_scope(watcher.call()), http.openai.stream("POST", server.url) as response:
        read = b""
        for part in response.iter_raw():
            read += part
            if read.endswith(DONE):
                break
    http.close()
    assert watcher.outcomes == ["ok"]


def test_a_stream_closed_early_is_cancelled(stub, watcher):
    with openai_client(stub(streaming(EVENT, EVENT, rest_s=SILENCE_S)).url) as client, call_scope(watcher.call()):
        stream = complete(client, stream=True)
        next(iter(stream))
        stream.close()
    assert watcher.outcomes == ["cancelled"]


def test_an_async_stream_closed_early_is_cancelled(stub, watcher):
    server = stub(streaming(EVENT, EVENT, rest_s=SILENCE_S))

    async def main() -> None:
        http = HttpClients()
        client = openai.AsyncOpenAI(base_url=server.url, api_key="unused", http_client=http.openai_async)
        with call_scope(watcher.call()):
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        await anext(aiter(stream))
        await stream.close()
        await http.aclose()

    asyncio.run(main())
    assert watcher.outcomes == ["cancelled"]


def test_a_stream_is_an_attempt_of_the_call_it_was_asked_for_in_wherever_it_is_read(stub, watcher):
    with (
        openai_client(stub(streaming(EVENT, DONE)).url) as client,
        call_scope(watcher.call(call_id="asked")),
    ):
        stream = complete(client, stream=True)
        with call_scope(watcher.call(call_id="read")):
            list(stream)
    assert [(attempt.call.call_id, attempt.outcome) for attempt in watcher.started] == [("asked", "ok")]


@pytest.mark.parametrize("status", [404, 500])
def test_a_vector_stores_error_status_is_an_error_of_the_attempt(status, stub, watcher):
    server = stub(lambda request, connection: connection.send(reply(b"{}", status)))
    client = HttpClients().qdrant(server.url)
    with call_scope(watcher.call(kind="retrieval")), pytest.raises(UnexpectedResponse):
        client.get_collections()
    client.close()
    assert watcher.outcomes == ["error"]
    assert watcher.ended[0].error_type == f"HTTP {status}"


def test_an_async_vector_store_request_is_an_attempt(stub, watcher):
    server = stub(at_once)

    async def main() -> None:
        client = HttpClients().qdrant_async(server.url)
        with call_scope(watcher.call(kind="retrieval")):
            await client.get_collections()
        await client.close()

    asyncio.run(main())
    assert watcher.outcomes == ["ok"]


# ---- what is sent


@pytest.mark.parametrize("role", ["router", " Prüfung (5%41)\n"])
def test_a_loopback_service_is_told_which_call_a_request_belongs_to(stub, watcher, role):
    server = stub(at_once)
    with openai_client(server.url) as client, call_scope(watcher.call(role=role)):
        complete(client)
    headers = server.requests[0].headers
    told = ServiceRequest("POST", "/", headers)
    names = ("run-id", "call-id", "attempt", "role", "step", "seed")
    assert [told.tag(name) for name in names] == ["r1", "llm/router/1.0.1", "1", role, "1.0.1", "7"]
    assert {name for name in headers if name.startswith(HEADER_PREFIX)} == {HEADER_PREFIX + name for name in names}


@pytest.fixture
def remote_name(monkeypatch) -> str:
    """A host name that is not this machine's, whose address is."""
    look_up = socket.getaddrinfo

    def resolve(host, *arguments, **options):
        return look_up("127.0.0.1" if host == "models.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return "models.example"


def tags_of(request) -> list[str]:
    return [name for name in request.headers if name.startswith(HEADER_PREFIX)]


@pytest.mark.parametrize(("host", "tags"), [("models.example", 0), ("localhost", 6), ("127.8.8.8", 6)])
def test_another_machine_is_told_nothing_and_every_name_of_this_one_is_loopback(host, tags, stub, watcher, remote_name):
    server = stub(at_once, "127.0.0.1" if host == remote_name else host)
    with openai_client(f"http://{host}:{server.port}") as client, call_scope(watcher.call()):
        complete(client)
    assert len(tags_of(server.requests[0])) == tags
    assert watcher.outcomes == ["ok"]


def test_without_a_call_a_request_goes_out_untouched_and_unseen(stub, watcher):
    server = stub(at_once)
    with openai_client(server.url) as client:
        complete(client)
    assert tags_of(server.requests[0]) == []
    assert watcher.started == []


# ---- redirects, and endpoints that may not be reached


def redirecting(host: str, port: int):
    def answer(request, connection) -> None:
        connection.send(reply(b"", 307, f"location: http://{host}:{port}{request.path}\r\n"))

    return answer


def test_a_redirect_to_another_machine_takes_no_tags_there(stub, watcher, remote_name):
    elsewhere = stub(at_once)
    server = stub(redirecting(remote_name, elsewhere.port))
    with openai_client(server.url) as client, call_scope(watcher.call()):
        complete(client)
    assert len(tags_of(server.requests[0])) == 6
    assert tags_of(elsewhere.requests[0]) == []
    assert watcher.outcomes == ["ok", "ok"]


def refusals_in(error: BaseException | None) -> list[EndpointRefused]:
    found = []
    while error is not None:
        if isinstance(error, EndpointRefused):
            found.append(error)
        error = error.__cause__ or error.__context__ or getattr(error, "source", None)
    return found


def test_a_redirect_does_not_escape_the_list_of_endpoints(stub, watcher, remote_name):
    elsewhere = stub(at_once)
    server = stub(redirecting(remote_name, elsewhere.port))
    with (
        openai_client(server.url, http={"admit": Settings().admit}) as client,
        call_scope(watcher.call()),
        pytest.raises((EndpointRefused, openai.APIConnectionError)) as caught,
    ):
        complete(client)
    assert refusals_in(caught.value)
    assert remote_name in str(refusals_in(caught.value)[0])
    assert (elsewhere.requests, elsewhere.connections) == ([], 0)


def test_an_async_redirect_does_not_escape_the_list_of_endpoints(stub, remote_name):
    elsewhere = stub(at_once)
    server = stub(redirecting(remote_name, elsewhere.port))

    async def main() -> None:
        http = HttpClients(admit=Settings().admit)
        client = openai.AsyncOpenAI(base_url=server.url, api_key="unused", http_client=http.openai_async, max_retries=0)
        with pytest.raises((EndpointRefused, openai.APIConnectionError)) as caught:
            await client.chat.completions.create(model="m", messages=MESSAGES)
        assert refusals_in(caught.value)
        await http.aclose()

    asyncio.run(main())
    assert elsewhere.connections == 0


def test_a_vector_store_that_is_not_admitted_is_never_connected_to(stub, remote_name):
    server = stub(at_once)
    client = HttpClients(admit=Settings().admit).qdrant(f"http://{remote_name}:{server.port}")
    with pytest.raises((EndpointRefused, ResponseHandlingException)) as caught:
        client.get_collections()
    client.close()
    assert refusals_in(caught.value)
    assert server.connections == 0


def test_a_proxy_of_the_environment_is_not_used(stub, monkeypatch):
    proxy, server = stub(at_once), stub(at_once)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with openai_client(server.url) as client:
        complete(client)
    qdrant = HttpClients().qdrant(server.url)
    qdrant.get_collections()
    qdrant.close()
    assert (len(server.requests), proxy.connections) == (2, 0)
