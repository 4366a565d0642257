"""A deadline bounds everything that a call does, whatever the server, the network or the pool is like.

Real time: a deadline that is enforced by sockets and event loops can only be seen there.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
import openai
import pytest
from chat_replies import BODY, MESSAGES, at_once, head, silent
from often import often
from stub_server import StubServer
from watched_calls import Watcher

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.network import (
    AsyncHttpx2Transport,
    AsyncHttpxTransport,
    HttpClients,
    Httpx2Transport,
    HttpxTransport,
    call_scope,
)

pytestmark = pytest.mark.wall

# The clients end within some milliseconds of a deadline; two shared cores pause for tens of them. An enforcement that
# looks at the clock only between pieces would be late by 0.2 s here (pieces at 0.3 and 0.6 s, the budget at 0.4 s).
BUDGET_S, GAP_S = 0.4, 0.3
LATE_S, EARLY_S = 0.15, 0.01


@dataclass(frozen=True)
class Timed:
    """A call's seconds, and what it ended with."""

    seconds: float
    value: Any = None
    error: Exception | None = None

    def ended_at_the_budget(self, budget_s: float = BUDGET_S) -> bool:
        return budget_s - EARLY_S <= self.seconds <= budget_s + LATE_S and self.is_timeout()

    def is_timeout(self) -> bool:
        """Whether the HTTP library's own timeout is what the client's error was raised from."""
        error: Any = self.error
        while error is not None:
            if isinstance(error, httpx.TimeoutException | httpx2.TimeoutException):
                return True
            error = error.__cause__ or error.__context__ or getattr(error, "source", None)
        return False


def timed(call: Callable[[], Any], budget_s: float | None = None) -> Timed:
    begun_at = time.monotonic()
    try:
        with deadline_scope(None if budget_s is None else Deadline.after(budget_s)):
            return Timed(value=call(), seconds=time.monotonic() - begun_at)
    except Exception as error:  # noqa: BLE001 - what it is gets asserted on
        return Timed(time.monotonic() - begun_at, error=error)


async def timed_async(call: Callable[[], Any], budget_s: float | None = None) -> Timed:
    begun_at = time.monotonic()
    try:
        with deadline_scope(None if budget_s is None else Deadline.after(budget_s)):
            return Timed(value=await call(), seconds=time.monotonic() - begun_at)
    except Exception as error:  # noqa: BLE001 - what it is gets asserted on
        return Timed(time.monotonic() - begun_at, error=error)


@contextlib.contextmanager
def openai_client(url: str, timeout_s: float | None) -> Iterator[openai.OpenAI]:
    http = HttpClients()
    base = {"base_url": f"{url}/v1", "api_key": "unused", "max_retries": 0}
    yield openai.OpenAI(http_client=http.openai, timeout=timeout_s, **base)
    http.close()


def ask_openai(url: str, budget_s: float | None, timeout_s: float | None = None) -> Timed:
    with openai_client(url, timeout_s) as client:
        return timed(lambda: client.chat.completions.create(model="m", messages=MESSAGES), budget_s)


def ask_openai_async(url: str, budget_s: float | None, timeout_s: float | None = None) -> Timed:
    async def main() -> Timed:
        http = HttpClients()
        options = {"api_key": "unused", "max_retries": 0, "timeout": timeout_s, "http_client": http.openai_async}
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", **options)
        outcome = await timed_async(lambda: client.chat.completions.create(model="m", messages=MESSAGES), budget_s)
        await http.aclose()
        return outcome

    return asyncio.run(main())


def ask_qdrant(url: str, budget_s: float | None, timeout_s: int = 60) -> Timed:
    client = HttpClients().qdrant(url, timeout_s)
    with contextlib.closing(client):
        return timed(client.get_collections, budget_s)


def ask_qdrant_async(url: str, budget_s: float | None, timeout_s: int = 60) -> Timed:
    async def main() -> Timed:
        client = HttpClients().qdrant_async(url, timeout_s)
        try:
            return await timed_async(client.get_collections, budget_s)
        finally:
            await client.close()

    return asyncio.run(main())


CLIENTS = [ask_openai, ask_openai_async, ask_qdrant, ask_qdrant_async]
every_client = pytest.mark.parametrize("ask", CLIENTS)
# One of each of the two stacks, one blocking and one not: what stands below both clients of a stack is the same.
often_two = pytest.mark.parametrize("ask", often(CLIENTS, ask_openai, ask_qdrant_async))


# ---- answers


def trickled(pieces: int):
    def answer(request, connection) -> None:
        connection.send(head())
        size = -(-len(BODY) // pieces)
        for start in range(0, len(BODY), size):
            connection.pause(GAP_S)
            connection.send(BODY[start : start + size])

    return answer


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Every client is used once before a clock starts: what it loads lazily takes longer than a budget here."""
    with contextlib.closing(StubServer(at_once)) as server:
        for ask in CLIENTS:
            assert ask(server.url, None).error is None


# ---- reading


@every_client
def test_a_trickled_body_ends_at_the_budget(ask, stub):
    server = stub(trickled(12))
    assert ask(server.url, BUDGET_S).ended_at_the_budget()
    assert len(server.requests) == 1


@pytest.mark.parametrize("ask", often(CLIENTS, ask_openai))
def test_without_a_deadline_the_clients_own_timeout_lets_the_trickled_body_run_to_its_end(ask, stub):
    outcome = ask(stub(trickled(5)).url, None, timeout_s=1)
    assert outcome.error is None
    assert outcome.seconds > 5 * GAP_S > 1


@often_two
def test_a_server_that_never_answers_is_left_at_the_budget(ask, stub):
    server = stub(silent)
    assert ask(server.url, BUDGET_S).ended_at_the_budget()
    assert len(server.requests) == 1


@often_two
def test_headers_that_are_trickled_end_at_the_budget(ask, stub):
    def answer(request, connection) -> None:
        for letter in head().decode():
            connection.send(letter.encode())
            connection.pause(GAP_S)

    assert ask(stub(answer).url, BUDGET_S).ended_at_the_budget()


@pytest.mark.parametrize("ask", [ask_openai, ask_qdrant_async])
def test_the_clients_own_timeout_applies_when_it_is_the_smaller_one(ask, stub):
    timeout_s = 1  # the smallest that qdrant-client has
    assert ask(stub(silent).url, 30.0, timeout_s=timeout_s).ended_at_the_budget(timeout_s)


@every_client
def test_an_answer_within_the_budget_is_not_touched(ask, stub):
    outcome = ask(stub(at_once).url, 30.0)
    assert outcome.error is None
    assert outcome.value is not None


# ---- before the first byte


@often_two
def test_connecting_to_a_port_that_does_not_answer_ends_at_the_budget(ask, deaf_port):
    assert ask(f"http://127.0.0.1:{deaf_port}", BUDGET_S).ended_at_the_budget()


@often_two
def test_a_name_that_cannot_be_looked_up_in_time_ends_at_the_budget(ask, monkeypatch):
    answered, asked = threading.Event(), []

    def look_up(host, *arguments, **options):
        asked.append(host)
        # Bounded, for an event loop waits for its threads before it closes.
        answered.wait(BUDGET_S + 0.5)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert ask("http://models.example:80", BUDGET_S).ended_at_the_budget()
    assert asked
    answered.set()


@pytest.fixture
def mute_port() -> Iterator[int]:
    """A port that accepts connections and neither reads nor writes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@often_two
def test_a_tls_handshake_that_nobody_answers_ends_at_the_budget(ask, mute_port):
    assert ask(f"https://127.0.0.1:{mute_port}", BUDGET_S).ended_at_the_budget()


# ---- writing

LARGE = bytes(24_000_000)  # more than the socket buffers of both sides hold


def write_sync(web, transport) -> Callable[[str], Timed]:
    def write(url: str) -> Timed:
        with web.Client(transport=transport(), timeout=None) as client:
            return timed(lambda: client.post(url, content=LARGE), BUDGET_S)

    return write


def write_async(web, transport) -> Callable[[str], Timed]:
    def write(url: str) -> Timed:
        async def main() -> Timed:
            async with web.AsyncClient(transport=transport(), timeout=None) as client:
                return await timed_async(lambda: client.post(url, content=LARGE), BUDGET_S)

        return asyncio.run(main())

    return write


every_transport = pytest.mark.parametrize(
    "write",
    [
        write_sync(httpx, HttpxTransport),
        write_sync(httpx2, Httpx2Transport),
        write_async(httpx, AsyncHttpxTransport),
        write_async(httpx2, AsyncHttpx2Transport),
    ],
    ids=["httpx", "httpx2", "httpx-async", "httpx2-async"],
)


@every_transport
def test_writing_to_a_server_that_does_not_read_ends_at_the_budget(write, mute_port):
    assert write(f"http://127.0.0.1:{mute_port}").ended_at_the_budget()


@every_transport
def test_writing_to_a_server_that_reads_a_little_now_and_then_ends_at_the_budget(write):
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        stopped = threading.Event()

        def sip() -> None:
            connection = stack.enter_context(listener.accept()[0])
            # Each sip makes room for another send, which a timeout of each send would allow for ever.
            while not stopped.wait(0.1):
                if not connection.recv(400_000):
                    return

        thread = threading.Thread(target=sip, daemon=True)
        thread.start()
        assert write(f"http://127.0.0.1:{listener.getsockname()[1]}").ended_at_the_budget()
        stopped.set()
        thread.join(5)


# ---- nothing left


@every_client
def test_nothing_is_sent_when_the_deadline_has_passed(ask, stub, monkeypatch):
    server = stub(at_once)
    passed = Deadline(at_s=time.monotonic() - 0.1, limit_s=1.0)
    monkeypatch.setattr(Deadline, "after", classmethod(lambda cls, budget_s: passed))
    outcome = ask(server.url, 1.0)
    assert outcome.is_timeout()
    assert outcome.seconds < LATE_S
    assert server.requests == []


def test_nothing_is_sent_over_an_open_connection_when_the_deadline_has_passed(stub):
    server = stub(at_once)
    with openai_client(server.url, None) as client:

        def ask() -> Any:
            return client.chat.completions.create(model="m", messages=MESSAGES)

        assert timed(ask).error is None
        with deadline_scope(Deadline(at_s=time.monotonic() - 0.1, limit_s=1.0)):
            assert timed(ask).is_timeout()
        assert timed(ask).error is None
    assert len(server.requests) == 2


# ---- the per-read cap, for comparison


def test_a_read_timeout_of_the_call_bounds_each_read_to_the_millisecond_where_the_client_knows_whole_seconds(stub):
    with call_scope(Watcher().call(kind="retrieval", read_timeout_s=BUDGET_S)):
        assert ask_qdrant(stub(silent).url, None).ended_at_the_budget()


def test_a_read_timeout_of_the_call_does_not_bound_the_total(stub):
    with call_scope(Watcher().call(kind="retrieval", read_timeout_s=BUDGET_S + 2 * GAP_S)):
        outcome = ask_qdrant(stub(trickled(5)).url, None)
    assert outcome.error is None
    assert outcome.seconds > 5 * GAP_S > BUDGET_S + 2 * GAP_S
