"""The virtual door, used through the official clients: the same plans as behind sockets, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpcore
import httpx
import openai
import pytest
from in_threads import in_threads
from often import often
from qdrant_client import AsyncQdrantClient, QdrantClient, models
from service_doors import (
    DURATION_S,
    HERE,
    MODEL,
    QUESTION,
    SLOW,
    TOKENS,
    Virtual,
    always,
    ask,
    openai_at,
    tags,
)
from watched_calls import Watcher

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import SimulationError
from docmind_lab.core.server_behaviour import GOES_ON, STOPS
from docmind_lab.network import HttpClients, call_scope
from docmind_lab.services.faults import FAULT_KINDS, Fault
from docmind_lab.services.log import RequestRow
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.plan import Chunk, Disconnect, Headers, Plan, ServiceRequest, Wait
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.virtual_time import VirtualClock

ANSWER = "Scripted reply: When does the quoll hunt in"
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])


# ---- the same answers as behind sockets

TOOLS: Any = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]
FAST = LatencyProfile("fast", "Two milliseconds.", "a test", always(0.001), always(0.0001), always(0.001))
POINTS = [
    models.PointStruct(id=number, vector={"lsa": [1.0 / number, number / 7]}, payload={"name": f"point {number}"})
    for number in range(1, 6)
]
COLLECTION: Any = {"vectors_config": {"lsa": models.VectorParams(size=2, distance=models.Distance.COSINE)}}
SEARCH: Any = {"query": [0.3, 0.9], "using": "lsa", "limit": 3}


def completion(**options: Any) -> tuple[str, str, bytes]:
    body = {"model": MODEL, "messages": QUESTION, "temperature": 0.7} | options
    return ("POST", "/v1/chat/completions", json.dumps(body).encode())


REQUESTS = [
    ("GET", "/v1/models", b""),
    ("GET", "/v1/nothing%20here", b""),
    completion(),
    completion(tools=TOOLS),
    completion(stream=True, stream_options={"include_usage": True}),
    completion(stream=True, tools=TOOLS),
    completion(model="another"),
    ("POST", "/v1/chat/completions", b"{"),
    ("GET", "/", b""),
    ("PUT", "/collections/c", b'{"vectors": {"size": 2, "distance": "Cosine"}}'),
    ("PUT", "/collections/c/points", b'{"points": [{"id": 1, "vector": [0.1, 0.9], "payload": {"a": 1}}]}'),
    ("POST", "/collections/c/points/query", b'{"query": [0.1, 0.8], "with_payload": true}'),
    ("POST", "/collections/d/points/query", b'{"query": [0.1, 0.8]}'),
    ("GET", "/collections?a=b", b""),
]


def exchanged(root: str) -> list[Any]:
    """Status, headers and body of each reply, without what the wall's own server adds."""
    with httpx.Client(base_url=root, trust_env=False, timeout=10) as client:
        replies = [client.request(method, path, content=body, headers=tags("r")) for method, path, body in REQUESTS]
    own = {"date", "server"}
    return [
        (reply.status_code, {n: v for n, v in reply.headers.items() if n not in own}, reply.content)
        for reply in replies
    ]


def test_every_reply_is_what_it_is_behind_sockets_to_the_byte(serve_here):
    wall = serve_here(profile=FAST)
    expected = exchanged(wall.addresses.qdrant_url)
    assert Virtual.of(profile=FAST).run(exchanged, HERE.qdrant_url) == expected


@both_ways
def test_the_openai_client_is_answered_in_the_time_that_is_planned(stream):
    virtual = Virtual.of()
    assert virtual.run(ask, stream) == ANSWER
    assert virtual.took_s == pytest.approx(DURATION_S, abs=1e-9)
    row = virtual.row
    assert (row.outcome, row.status, row.output_tokens, row.received_at) == ("ok", 200, TOKENS, 0.0)
    assert row.ended_at == virtual.took_s == row.last_byte_at


def test_the_qdrant_clients_find_what_the_local_engine_finds():
    with contextlib.closing(QdrantClient(":memory:")) as local:
        local.create_collection("c", **COLLECTION)
        local.upsert("c", POINTS)
        expected = local.query_points("c", **SEARCH)

    def find() -> Any:
        with contextlib.closing(QdrantClient(url=HERE.qdrant_url, check_compatibility=False)) as client:
            client.create_collection("c", **COLLECTION)
            client.upsert("c", POINTS, wait=True)
            assert not client.collection_exists("d")
            return client.query_points("c", **SEARCH)

    async def find_async() -> Any:
        client = AsyncQdrantClient(url=HERE.qdrant_url, check_compatibility=False)
        try:
            return await client.query_points("c", **SEARCH)
        finally:
            await client.close()

    virtual = Virtual.of()
    assert virtual.run(find) == expected
    assert virtual.took_s == 0.05, "a search takes its time, and nothing else does"
    assert virtual.run(lambda: asyncio.run(find_async())) == expected


# ---- what the clients' own timeouts do


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_retries_multiply_a_timeout(retries):
    virtual = Virtual.of("hang:*")
    assert virtual.run(lambda: ask(timeout=0.5, max_retries=retries)) == "APITimeoutError"
    backoffs_s = virtual.took_s - 0.5 * (retries + 1)
    # The client waits 0.5 s before its first retry and 1 s before its second, less up to a quarter.
    longest_s = [0.0, 0.5, 1.5][retries]
    assert 0.75 * longest_s - 1e-9 <= backoffs_s <= longest_s + 1e-9
    assert [row.outcome for row in virtual.rows] == ["client_gone"] * (retries + 1)
    for row in virtual.rows:
        assert row.client_gone_at == row.ended_at == pytest.approx(row.received_at + 0.5)


def test_retry_after_is_obeyed_whatever_the_timeout():
    virtual = Virtual.of("rate_limit=2:*")
    assert virtual.run(lambda: ask(timeout=0.3, max_retries=2)) == "RateLimitError"
    assert virtual.took_s == 4.0
    assert [(row.status, row.received_at) for row in virtual.rows] == [(429, 0.0), (429, 2.0), (429, 4.0)]


@both_ways
def test_a_trickle_defeats_a_timeout_of_each_read_and_no_total_deadline(stream):
    virtual = Virtual.of("trickle:*")
    assert virtual.run(lambda: ask(stream, timeout=1.0)) == ANSWER
    assert virtual.took_s > 3.6

    def under_a_deadline() -> Any:
        with call_scope(Watcher().call(run_id="r")), deadline_scope(Deadline.after(1.7)):
            return ask(stream, timeout=1.0, http_client=HttpClients().openai)

    assert virtual.run(under_a_deadline) in ("APITimeoutError", "ReadTimeout")
    assert virtual.took_s == pytest.approx(1.7, abs=1e-9)
    assert virtual.row.client_gone_at == virtual.took_s


QUESTIONED: Any = {"model": MODEL, "messages": QUESTION}


@contextlib.asynccontextmanager
async def openai_on_a_loop(connections: int = 100) -> AsyncIterator[openai.AsyncOpenAI]:
    http = HttpClients(max_connections=connections)
    options: Any = {"api_key": "unused", "max_retries": 0, "timeout": None, "http_client": http.openai_async}
    async with openai.AsyncOpenAI(base_url=HERE.openai_base_url, **options) as client:
        yield client


def test_a_stream_is_held_to_the_deadline_it_was_asked_for_under_wherever_it_is_read():
    def read_later() -> None:
        with openai_at(HERE, http_client=HttpClients().openai) as client:
            with deadline_scope(Deadline.after(1.7)):
                chunks = client.chat.completions.create(**QUESTIONED, stream=True)
            with pytest.raises(openai.APITimeoutError):
                list(chunks)

    async def read_later_on_a_loop() -> None:
        async with openai_on_a_loop() as client:
            with deadline_scope(Deadline.after(1.7)):
                chunks = await client.chat.completions.create(**QUESTIONED, stream=True)
            with pytest.raises(openai.APITimeoutError):
                [chunk async for chunk in chunks]

    virtual = Virtual.of("trickle:*")
    for read in (read_later, lambda: asyncio.run(read_later_on_a_loop())):
        virtual.run(read)
        assert virtual.took_s == pytest.approx(1.7, abs=1e-9)


def test_waiting_for_the_only_connection_of_a_pool_ends_at_the_deadline():
    def wait() -> None:
        with openai_at(HERE, http_client=HttpClients(max_connections=1).openai, timeout=None) as client:
            ask_it = partial(client.chat.completions.create, **QUESTIONED)
            threading.Thread(target=suppressing, args=(ask_it,)).start()
            time.sleep(0.3)  # until it has the only connection
            with deadline_scope(Deadline.after(1.4)), pytest.raises(openai.APITimeoutError):
                ask_it()

    async def wait_on_a_loop() -> None:
        async with openai_on_a_loop(connections=1) as client:
            occupant = asyncio.create_task(client.chat.completions.create(**QUESTIONED))
            await asyncio.sleep(0.3)
            with deadline_scope(Deadline.after(1.4)), pytest.raises(openai.APITimeoutError):
                await client.chat.completions.create(**QUESTIONED)
            occupant.cancel()

    virtual = Virtual.of("hang:*")
    for sent, waits in enumerate((wait, lambda: asyncio.run(wait_on_a_loop())), 1):
        virtual.run(waits)
        assert virtual.took_s == pytest.approx(1.7, abs=1e-9)
        assert len(virtual.door.log.rows("")) == sent, "the one that waits is never sent"


def suppressing(function: Callable[[], Any]) -> None:
    with contextlib.suppress(openai.OpenAIError):
        function()


def test_an_address_without_a_service_is_refused():
    elsewhere = VirtualDoor(OpenAIService(SLOW), VectorService(SLOW), addresses=[("model.test", 8000)])
    assert Virtual(elsewhere).run(ask) == "APIConnectionError"
    there = ServiceAddresses("http://model.test:8000/v1", "", "")

    def ask_there() -> int:
        with openai_at(there) as client:
            return len(client.models.list().data)

    assert Virtual(elsewhere).run(ask_there) == 1


def test_a_request_of_which_only_a_part_was_sent_was_never_asked():
    def send_a_part() -> None:
        def part() -> Any:
            yield b"{"
            raise ConnectionAbortedError

        with pytest.raises(ConnectionAbortedError):
            httpx.post(f"{HERE.openai_base_url}/chat/completions", content=part(), headers=tags("r"), trust_env=False)

    virtual = Virtual.of()
    virtual.run(send_a_part)
    assert virtual.rows == []


# ---- slots

ONE_SLOT = replace(SLOW, slots=1)


def crowd(*leave_after_s: float) -> None:
    """Clients that come 0.1 s apart, each in a thread."""

    def come(number: int, leaves_after_s: float) -> None:
        time.sleep(0.1 * number)
        ask(headers=tags("r", f"call-{number}"), timeout=leaves_after_s)

    in_threads(*(partial(come, number, after_s) for number, after_s in enumerate(leave_after_s)))


def test_a_client_that_leaves_the_queue_makes_room_only_where_the_service_stops():
    stops = Virtual.of(profile=ONE_SLOT)
    stops.run(crowd, 60.0, 0.5, 60.0)
    assert [row.outcome for row in stops.rows] == ["ok", "client_gone", "ok"]
    assert [row.queue_wait_s for row in stops.rows] == pytest.approx([0.0, 0.5, DURATION_S - 0.2])
    plays_on = Virtual.of(profile=ONE_SLOT, behaviour=GOES_ON)
    plays_on.run(crowd, 60.0, 0.5, 60.0)
    assert [row.outcome for row in plays_on.rows] == ["ok", "ok", "ok"]
    assert plays_on.rows[2].queue_wait_s == pytest.approx(2 * DURATION_S - 0.2)


def test_a_hang_keeps_its_slot_until_its_client_leaves():
    virtual = Virtual.of("hang@1:router", profile=ONE_SLOT)

    def hang_then_ask() -> None:
        threading.Thread(target=lambda: ask(timeout=5.0)).start()
        time.sleep(1.0)
        ask(headers=tags("r", role="planner"))

    virtual.run(hang_then_ask)
    assert [row.outcome for row in virtual.rows] == ["client_gone", "ok"]
    assert virtual.rows[1].queue_wait_s == 4.0


# ---- the log, and runs that are over


def test_rows_that_were_read_do_not_change_and_one_in_the_queue_says_how_long_it_waits():
    virtual = Virtual.of(profile=ONE_SLOT)

    def look() -> list[RequestRow]:
        threading.Thread(target=crowd, args=(60.0, 60.0)).start()
        time.sleep(0.5)
        rows = virtual.door.rows("r")
        time.sleep(1.0)
        return rows

    first, second = virtual.run(look)
    assert (first.outcome, first.output_tokens, first.token_spans) == ("open", 0, [])
    assert (second.outcome, second.status) == ("open", None)
    assert (second.received_at, second.queue_wait_s) == (0.1, 0.4)


def test_waiting_for_quiet_is_virtual_and_ends_when_the_run_is():
    virtual = Virtual.of()

    def look() -> list[tuple[int, float]]:
        threading.Thread(target=ask).start()
        time.sleep(0.25)
        seen = []
        for patience_s in (0.25, 60.0, 60.0):
            rows = virtual.door.rows("r", wait_quiet_s=patience_s)
            seen.append((sum(row.outcome == "open" for row in rows), time.monotonic()))
        return seen

    assert virtual.run(look) == [(1, 0.5), (0, pytest.approx(DURATION_S)), (0, pytest.approx(DURATION_S))]


@pytest.mark.parametrize("stops", [True, False])
def test_a_run_that_is_over_is_cut_forgotten_and_its_orphans_are_refused(stops):
    virtual = Virtual.of("hang:router", behaviour=STOPS if stops else GOES_ON)
    replies: list[tuple[str, float]] = []

    def orphan() -> None:
        replies.append((ask(max_retries=2), time.monotonic()))

    def end_the_run() -> list[RequestRow]:
        threading.Thread(target=orphan).start()
        time.sleep(2.0)
        virtual.door.forget("r")
        time.sleep(1.0)
        orphan()
        return virtual.door.rows("r")

    assert virtual.run(end_the_run) == []
    assert replies == [("InternalServerError", 2.0), ("InternalServerError", 3.0)]


def test_a_door_serves_one_run_at_a_time():
    virtual = Virtual.of()
    with virtual.door.open(VirtualClock()), pytest.raises(SimulationError, match="another run"):
        virtual.run(ask)
    assert virtual.run(ask) == ANSWER


class Broken:
    """A service with a defect."""

    def plan(self, request: ServiceRequest) -> Plan:
        raise ZeroDivisionError


def test_a_defect_of_a_service_ends_the_run_and_is_not_taken_for_a_bad_network():
    with pytest.raises(ZeroDivisionError):
        Virtual(VirtualDoor(Broken(), VectorService(SLOW))).run(lambda: ask(max_retries=2))


@dataclass
class Planned:
    """A service that does what a test says."""

    steps: tuple[Any, ...]

    def plan(self, request: ServiceRequest) -> Plan:
        return Plan(self.steps, "llm")


def test_a_connection_that_the_service_closes_before_a_word_is_an_error():
    door = VirtualDoor(Planned((Wait(0.5), Disconnect())), VectorService(SLOW))
    virtual = Virtual(door)
    assert virtual.run(ask) == "APIConnectionError"
    assert (virtual.took_s, virtual.row.outcome, virtual.row.status) == (0.5, "error", None)


def test_a_body_without_a_length_goes_out_in_chunks_on_a_connection_that_is_kept():
    steps = (Headers(200), Wait(0.5), Chunk(b'{"object": "list", '), Wait(0.5), Chunk(b'"data": []}'))
    virtual = Virtual(VirtualDoor(Planned(steps), VectorService(SLOW)))
    wires: list[Any] = []
    accepted = virtual.door._accepted
    virtual.door._accepted = lambda wire: wires.append(wire) or accepted(wire)  # type: ignore[method-assign]

    def twice() -> list[int]:
        with openai_at(HERE) as client:
            return [len(client.models.list().data) for _ in range(2)]

    assert virtual.run(twice) == [0, 0]
    assert (virtual.took_s, len(wires)) == (2.0, 1)


def test_what_is_not_http_is_refused_and_the_connection_closed():
    def speak_another_language() -> bytes:
        stream = httpcore.SyncBackend().connect_tcp("127.0.0.1", PORT)
        stream.write(b"\x16\x03\x01 is no request\r\n\r\n")
        return stream.read(1000) + stream.read(1000)

    assert Virtual.of().run(speak_another_language).startswith(b"HTTP/1.1 400 ")


# ---- every fault, on both doors

# Small enough for a real test of every kind, large enough to be told from a pause of the machine.
SHORT = {"trickle": "=0.03", "rate_limit": "=1"} | dict.fromkeys(
    ("stall", "stall_mid_stream", "slow_first_token", "keep_alive", "retrieval_slow"), "=0.4"
)
# Without those that last for an hour.
KINDS = [kind for kind in FAULT_KINDS if not kind.startswith("retrieval") and kind != "endless"]
QUICK = replace(SLOW, first_token_s=always(0.05), inter_token_s=always(0.01))
# Real calls are late by what the clients and two threads need, never early; and by what the machine keeps them waiting.
PAUSE_S = 0.25


def kept_waiting_s() -> float:
    """Seconds that this process's threads were ready and had no core, added up; 0 where the system does not say."""
    waited_ns = 0
    for account in Path("/proc/self/task").glob("*/schedstat"):
        # A thread may end while it is looked at.
        with contextlib.suppress(OSError):
            waited_ns += int(account.read_text().split()[1])
    return waited_ns / 1e9


def summary(row: RequestRow) -> tuple[Any, ...]:
    return row.fault, row.outcome, row.status, row.input_tokens, row.output_tokens, [n for *_, n in row.token_spans]


@pytest.mark.wall
@both_ways
@pytest.mark.parametrize("kind", often(KINDS, "hang", "disconnect"))
def test_a_fault_is_the_same_on_both_doors(kind, stream, serve_here):
    fault = Fault.parse(f"{kind}{SHORT.get(kind, '')}:*")
    wall, virtual = serve_here(profile=QUICK, faults=(fault,)), Virtual.of(str(fault), profile=QUICK)
    options: Any = {"timeout": 0.5 if kind == "hang" else 60.0}
    expected = virtual.run(lambda: ask(stream, **options))
    ask(at=wall.addresses, headers=tags("warm-up"), **options)  # what the first use loads, no later one does
    waited_before_s, begun_at = kept_waiting_s(), time.monotonic()
    got = ask(stream, at=wall.addresses, **options)
    took_s = time.monotonic() - begun_at
    late_s = PAUSE_S + max(0.0, kept_waiting_s() - waited_before_s)
    assert got == expected
    assert virtual.took_s - 0.01 <= took_s <= virtual.took_s + late_s
    assert summary(wall.row("r")) == summary(virtual.row)
    for at in ("first_byte_at", "last_byte_at", "ended_at"):
        real, simulated = getattr(wall.row("r"), at), getattr(virtual.row, at)
        assert (real is None) == (simulated is None), at
        if real is not None:
            assert real - wall.row("r").received_at == pytest.approx(simulated, abs=late_s), at
