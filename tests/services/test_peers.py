"""What peers do, drawn by key, and the SDK's server of them behind either door: rows, cards, the end of a run."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest
from service_doors import Here, always, new_run, tags

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import DrawKey
from docmind_lab.services.hosted_behaviour import PeerBehaviour, PeerHabits
from docmind_lab.services.log import RequestRow
from docmind_lab.services.openai_service import OpenAIService
from docmind_lab.services.server import ServiceAddresses
from docmind_lab.services.vector_service import VectorService
from docmind_lab.services.virtual_door import PORT, VirtualDoor
from docmind_lab.services.wall_door import WallDoor
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.peers.executor import answer_task
from docmind_lab.virtual_time import VirtualClock

# Two steps of 0.2 s + 40 tokens × 0.01 s: every task takes 1.2 s.
PROFILE = LatencyProfile("short", "Tasks of 1.2 s.", "a test", always(0.2), always(0.01), always(0.0))
WORK_S = 1.2
RUN, CALL = "a run", "peer/reader_1/0.0.1"


def headers(run_id: str, call_id: str = CALL) -> dict[str, str]:
    return tags(run_id, call_id, "reader_1") | {"a2a-version": "1.0", "accept": "text/event-stream"}


def asking(method: str = "SendStreamingMessage", **params: Any) -> dict[str, Any]:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"question": "Why?", "passages": []}}]}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {"message": message}}


def behaviour(habits: PeerHabits | None = None) -> PeerBehaviour:
    return PeerBehaviour(PROFILE, habits or PeerHabits())


def plain() -> httpx.AsyncClient:
    """A client past the seam, which would replace the tags by those of a call."""
    return httpx.AsyncClient(trust_env=False, timeout=30.0)


async def streamed(client: httpx.AsyncClient, url: str, run_id: str, until_s: float = 60.0) -> list[dict[str, Any]]:
    """The events of a stream, until it ends or for so long."""
    events: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(until_s):
            async with client.stream("POST", url, json=asking(), headers=headers(run_id)) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data:"):
                        events.append(json.loads(line.removeprefix("data:"))["result"])
    except TimeoutError:
        pass
    return events


class Virtual:
    """The virtual door, and a client's coroutine run against it."""

    def __init__(self, habits: PeerHabits | None = None) -> None:
        self.door = VirtualDoor(OpenAIService(PROFILE), VectorService(PROFILE), peers=behaviour(habits))
        self.clock = VirtualClock(horizon_s=30.0, on_entry=[self.door.open])
        self.url = f"{ServiceAddresses.at_port(PORT).peers_url}/reader_1"

    def run(self, work: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        async def main() -> Any:
            async with plain() as client:
                return await work(client)

        return self.clock.run_async(main)

    def row(self) -> RequestRow:
        (row,) = self.door.log.rows(RUN)
        return row


def test_the_id_of_a_task_comes_first_and_its_row_says_when_its_work_ended() -> None:
    virtual = Virtual()
    events = virtual.run(lambda client: streamed(client, virtual.url, RUN))
    assert [next(iter(event)) for event in events] == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert events[0]["task"]["id"] == events[-1]["statusUpdate"]["taskId"]
    row = virtual.row()
    assert (row.kind, row.role, row.call_id, row.outcome, row.status) == ("peer", "reader_1", CALL, "ok", 200)
    assert (row.received_at, row.first_byte_at) == (0.0, 0.0)
    assert (row.last_byte_at, row.ended_at) == (pytest.approx(WORK_S), pytest.approx(WORK_S))
    assert (row.input_tokens, row.output_tokens) == (0, 0)


def test_a_task_goes_on_when_the_request_for_it_is_gone() -> None:
    virtual = Virtual()
    virtual.run(lambda client: streamed(client, virtual.url, RUN, until_s=0.5))
    row = virtual.row()
    assert (row.client_gone_at, row.outcome) == (pytest.approx(0.5), "ok")
    assert row.ended_at == pytest.approx(WORK_S)


def test_the_end_of_a_run_stops_its_peers_even_those_that_ignore_cancels_and_refuses_its_orphans() -> None:
    virtual = Virtual(PeerHabits(ignores_cancel=1.0))
    refused: list[int] = []
    rows: list[RequestRow] = []

    async def work(client: httpx.AsyncClient) -> None:
        stream = asyncio.create_task(streamed(client, virtual.url, RUN))
        await asyncio.sleep(0.5)
        rows.extend(virtual.door.log.rows(RUN))
        virtual.door.forget(RUN)
        with pytest.raises(httpx.RemoteProtocolError):
            await stream
        assert virtual.clock.now() == pytest.approx(0.5)
        answer = await client.post(virtual.url, json=asking(), headers=headers(RUN))
        refused.append(answer.status_code)

    virtual.run(work)
    assert refused == [503]
    assert (rows[0].outcome, rows[0].ended_at) == ("ended", pytest.approx(0.5))


def test_each_peer_has_a_card() -> None:
    virtual = Virtual()
    url = f"{virtual.url}/.well-known/agent-card.json"
    answer = virtual.run(lambda client: client.get(url, headers=headers(RUN)))
    assert answer.json()["name"] == "reader_1"
    assert answer.json()["capabilities"]["streaming"] is True


def test_what_is_no_request_of_the_protocol_is_told_so_and_stands_in_the_log() -> None:
    virtual = Virtual()
    body = {"jsonrpc": "2.0", "id": 1, "method": "Dance"}
    answer = virtual.run(lambda client: client.post(virtual.url, json=body, headers=headers(RUN)))
    assert answer.json()["error"]["code"] == -32601  # JSON-RPC's "method not found"
    assert virtual.row().outcome == "ok"


@pytest.mark.wall
def test_a_run_that_ends_with_peers_at_work_leaves_the_next_one_alone() -> None:
    virtual = Virtual(PeerHabits(lost=1.0))
    for _ in range(2):
        started = time.perf_counter()
        virtual.run(lambda client: streamed(client, virtual.url, RUN, until_s=0.5))
        # A stall would take the clock's own ten seconds to be noticed.
        assert time.perf_counter() - started < 9.0
    assert [row.outcome for row in virtual.door.log.rows(RUN)] == ["ended", "ended"]


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    made = Here(WallDoor(OpenAIService(PROFILE), VectorService(PROFILE), peers=behaviour()))
    with httpx.Client(trust_env=False) as client:
        # The first request loads the SDK, which takes a second or more.
        client.get(f"{made.addresses.peers_url}/reader_1/.well-known/agent-card.json", timeout=60.0)
    yield made
    made.close()


@pytest.mark.wall
def test_over_sockets_too_a_task_goes_on_when_the_request_for_it_is_gone(here: Here) -> None:
    run_id = new_run()

    async def work() -> list[dict[str, Any]]:
        async with plain() as client:
            return await streamed(client, f"{here.addresses.peers_url}/reader_1", run_id, until_s=0.4)

    events = asyncio.run(work())
    assert [next(iter(event)) for event in events][:2] == ["task", "statusUpdate"]
    row = here.row(run_id)
    assert row.outcome == "ok"
    assert row.client_gone_at is not None
    assert row.ended_at is not None
    # No sooner than its work takes; later by what a busy machine takes.
    assert WORK_S - 0.01 <= row.ended_at - row.received_at < WORK_S + 1.0
    assert row.client_gone_at < row.ended_at


# ---- what they do

TYPICAL = LatencyProfile.named("typical")
KEYS = [DrawKey(seed, "reader_1", "0.0.1") for seed in range(400)]


def test_the_same_key_draws_the_same_course_and_another_role_another() -> None:
    behaviour = PeerBehaviour(TYPICAL)
    key = DrawKey(7, "reader_1", "0.0.1")
    assert behaviour.course(key) == behaviour.course(key)
    assert behaviour.course(key).steps_s != behaviour.course(DrawKey(7, "reader_2", "0.0.1")).steps_s


def test_habits_do_not_change_how_long_the_work_itself_takes() -> None:
    plain, odd = PeerBehaviour(TYPICAL, PeerHabits()), PeerBehaviour(TYPICAL, PeerHabits(ignores_cancel=1, twice=1))
    assert [plain.course(key).work_s for key in KEYS] == [odd.course(key).work_s for key in KEYS]


def test_each_share_is_the_share_of_tasks_that_it_names() -> None:
    courses = [PeerBehaviour(TYPICAL, PeerHabits(ignores_cancel=0.3, lost=0.1)).course(key) for key in KEYS]
    # 400 draws: within four standard deviations of a share.
    assert sum(course.ignores_cancel for course in courses) / 400 == pytest.approx(0.3, abs=0.092)
    assert sum(math.isinf(course.work_s) for course in courses) / 400 == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize(("name", "value"), [("lost", 1.5), ("twice", -0.1), ("heartbeat_s", 0.0), ("late", True)])
def test_a_habit_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=name):
        PeerHabits(**{name: value})


def test_a_peer_states_what_its_passages_say_and_cites_them() -> None:
    passages = [
        {"id": "quoll#1", "content": "The quoll is a marsupial. The quoll will hunt at night in the forest."},
        {"id": "numbat#1", "content": "The numbat eats termites, and nothing but termites, all day long."},
    ]
    found = answer_task({"question": "When does the quoll hunt?", "passages": passages})
    assert found["ids"] == ["quoll#1"]
    assert "hunt at night" in found["statement"]


@pytest.mark.parametrize("task", [{}, {"question": "Why?"}, {"passages": "text"}, {"passages": [{"id": "a"}, 7]}])
def test_a_peer_that_is_sent_nothing_useful_finds_nothing(task: dict[str, object]) -> None:
    assert answer_task(task) == {"statement": "", "ids": []}
