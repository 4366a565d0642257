"""The store over a real Redis server: replies that are lost, a server that is killed, one that stands still."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from docmind_lab.core.errors import ConfigurationError, StoreError
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerNews
from docmind_lab.systems.peers.correlation import CorrelationEntry, PeerResult, PeerTimeouts
from docmind_lab.systems.peers.correlator import Correlator
from docmind_lab.systems.peers.stores import RedisStore

pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server: Debian's package redis-server"),
]

ENTRY = CorrelationEntry("s/1", "call_1", {"position": "0.0"}, "ask_reader_1", "reader_1", "task", "task/0", 8.0)
CALLS = [PeerCall(f"call_{number}", "ask_reader", f"reader_{number}", {}) for number in (1, 2)]
TIMEOUT_S = 0.3
# Two tries of half a second each, and the pauses of a busy machine; without bounds it would be for ever.
DECIDED_WITHIN_S = 10.0
# A loop that waited for the server itself would stand still for a second.
LOOP_GAP_S = 0.8


class Server:
    """A Redis server that keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self.url = folder, f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [
            "redis-server",
            *f"--port {self.port} --bind 127.0.0.1 --dir".split(),
            str(self.folder),
            "--save",
            "",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        with redis.Redis.from_url(self.url) as client:
            for _ in range(200):
                with contextlib.suppress(redis.RedisError):
                    client.ping()
                    return
                time.sleep(0.05)
        raise AssertionError("redis-server did not start")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def store(server: Server) -> Iterator[RedisStore]:
    store = RedisStore(server.url)
    yield store
    store.close()


def lose_the_next_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server does what the next transaction says, and its connection breaks before the reply is there."""
    execute, lost = redis.client.Pipeline.execute, []

    def broken(self: Any, raise_on_error: bool = True) -> Any:
        reply = execute(self, raise_on_error)
        if not lost:
            lost.append(reply)
            raise redis.ConnectionError("made up by the test")
        return reply

    monkeypatch.setattr(redis.client.Pipeline, "execute", broken)


def test_a_claim_whose_reply_was_lost_is_settled(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.register([ENTRY])
    lose_the_next_reply(monkeypatch)
    assert store.claim("s/1") == ENTRY
    assert store.claim("s/1") is None


def test_a_registration_whose_reply_was_lost_is_settled(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_the_next_reply(monkeypatch)
    store.register([ENTRY])
    assert store.pending() == ("s/1",)
    with pytest.raises(ConfigurationError, match="pending already"):
        store.register([ENTRY])
    assert store.claim("s/1") == ENTRY


def test_an_extension_whose_reply_was_lost_is_settled(store: RedisStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.register([ENTRY])
    lose_the_next_reply(monkeypatch)
    assert store.extend("s/1", 0)
    assert store.claim("s/1") == replace(ENTRY, extensions=1)


def test_a_name_may_be_used_again_when_its_call_is_over(store: RedisStore) -> None:
    for _ in range(2):
        store.register([ENTRY])
        assert store.claim("s/1") == ENTRY


def test_of_twenty_claimants_of_one_entry_exactly_one_gets_it(server: Server, store: RedisStore) -> None:
    store.register([ENTRY])
    begin, got = threading.Barrier(20), []

    def claim() -> None:
        mine = RedisStore(server.url)
        begin.wait()
        got.append(mine.claim("s/1"))
        mine.close()

    claimants = [threading.Thread(target=claim) for _ in range(20)]
    for claimant in claimants:
        claimant.start()
    for claimant in claimants:
        claimant.join()
    assert [found for found in got if found is not None] == [ENTRY]
    assert len(got) == 20


def test_an_entry_that_a_killed_server_has_lost_is_an_error_and_not_somebody_elses(
    server: Server, store: RedisStore
) -> None:
    store.register([ENTRY])
    server.kill()
    with pytest.raises(StoreError, match="ConnectionError"):
        store.claim("s/1")
    server.start()
    with pytest.raises(StoreError, match="it was lost"):
        store.claim("s/1")


def test_a_call_whose_server_was_killed_and_restarted_is_decided_once(server: Server, store: RedisStore) -> None:
    correlator, delivered = Correlator(store), list[tuple[PeerResult, ...]]()
    correlator.begin([ENTRY], delivered.append)
    server.kill()
    server.start()
    assert correlator.answered(ENTRY, {"text": "found"}) is None
    assert correlator.timed_out(ENTRY) is None
    assert not correlator.send_failed(ENTRY, "late")
    (((result,)),) = delivered
    assert (result.outcome, dict(result.payload)) == ("completed", {"text": "found"})


class Silent:
    """Peers that never answer."""

    async def send(self, *_: object) -> AsyncIterator[PeerNews]:
        await asyncio.sleep(DECIDED_WITHIN_S)
        yield PeerNews("ended", "")

    async def cancel(self, *_: object) -> str:
        return "canceled"


def caller_over(store: RedisStore) -> PeerCaller:
    timeouts = PeerTimeouts(timeout_s=TIMEOUT_S, hard_cap_s=TIMEOUT_S, cancel_s=0.1, listen_s=0.1)
    return PeerCaller(Silent(), Correlator(store), timeouts)  # type: ignore[arg-type]


def test_a_server_that_stands_still_loses_no_timeout_and_blocks_no_loop(server: Server, store: RedisStore) -> None:
    gaps: list[float] = []

    async def look_on() -> None:
        while True:
            at = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - at)

    async def main() -> tuple[PeerResult, ...]:
        caller = caller_over(store)
        calling = asyncio.create_task(caller.call(CALLS, step="0", logical_task_id="run"))
        await asyncio.sleep(TIMEOUT_S / 3)
        server.process.send_signal(signal.SIGSTOP)
        looking = asyncio.create_task(look_on())
        results = await asyncio.wait_for(calling, DECIDED_WITHIN_S)
        looking.cancel()
        await caller.idle()
        return results

    results = asyncio.run(main())
    assert [result.outcome for result in results] == ["timed_out", "timed_out"]
    assert max(gaps) < LOOP_GAP_S


def test_calls_are_not_sent_when_the_store_does_not_take_them(server: Server, store: RedisStore) -> None:
    server.process.send_signal(signal.SIGSTOP)
    results = asyncio.run(caller_over(store).call(CALLS, step="0", logical_task_id="run"))
    assert [result.outcome for result in results] == ["send_failed", "send_failed"]
    assert "Redis" in results[0].error


def test_a_cancelled_parent_is_cancelled_though_the_server_stands_still(server: Server, store: RedisStore) -> None:
    async def main() -> float:
        caller = caller_over(store)
        calling = asyncio.create_task(caller.call(CALLS, step="0", logical_task_id="run"))
        await asyncio.sleep(TIMEOUT_S / 3)
        server.process.send_signal(signal.SIGSTOP)
        calling.cancel()
        began_at = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await calling
        took_s = time.monotonic() - began_at
        await caller.idle()
        return took_s

    assert asyncio.run(main()) < LOOP_GAP_S
