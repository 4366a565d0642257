"""Exactly one party gets an entry, in memory and in a file; and what happens when the file cannot be used."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docmind_lab.core.errors import ConfigurationError, StoreError
from docmind_lab.systems.peers.caller import PeerCall, PeerCaller
from docmind_lab.systems.peers.client import PeerNews
from docmind_lab.systems.peers.correlation import CorrelationEntry, PeerResult, PeerTimeouts, SqliteStore
from docmind_lab.systems.peers.correlator import Correlator

ENTRY = CorrelationEntry("s/1", "call_1", "reader_1", "task", "task/0", 8.0)


def entry(name: str) -> CorrelationEntry:
    return replace(ENTRY, sub_task_id=name)


@pytest.fixture(params=["in memory", "in a file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore() if request.param == "in memory" else SqliteStore(tmp_path / "pending.db")
    yield store
    store.close()


def test_a_claim_removes_the_entry_and_returns_it_whole(store: SqliteStore) -> None:
    store.register([ENTRY])
    assert store.claim("s/1") == ENTRY
    assert store.claim("s/1") is None
    assert store.pending() == ()


@pytest.mark.parametrize("place", ["in memory", "in a file"])
def test_of_many_threads_that_claim_one_entry_exactly_one_gets_it(place: str, tmp_path: Path) -> None:
    # Each thread has its own connection to the file, as each process that shares it has.
    in_memory = SqliteStore()
    stores = [in_memory if place == "in memory" else SqliteStore(tmp_path / "p.db") for _ in range(4)]
    names = [f"s/{number:03}" for number in range(40)]
    stores[0].register([entry(name) for name in names])
    got: list[CorrelationEntry | None] = []

    def claim_all(store: SqliteStore) -> None:
        got.extend(store.claim(name) for name in names)

    threads = [threading.Thread(target=claim_all, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found.sub_task_id for found in got if found is not None) == names
    for store in (in_memory, *stores):
        store.close()


def test_all_calls_of_a_step_are_registered_or_none(store: SqliteStore) -> None:
    store.register([entry("s/2")])
    with pytest.raises(ConfigurationError, match="pending already"):
        store.register([entry("s/1"), entry("s/2"), entry("s/3")])
    assert store.pending() == ("s/2",)


def test_an_extension_counts_for_a_pending_entry_only_and_from_what_was_seen(store: SqliteStore) -> None:
    store.register([ENTRY])
    assert store.extend("s/1", 0)
    assert not store.extend("s/1", 0)  # somebody has extended it since
    assert store.extend("s/1", 1)
    claimed = store.claim("s/1")
    assert claimed is not None
    assert claimed.extensions == 2
    assert not store.extend("s/1", 2)


# ---- a file that cannot be used


class Broken(SqliteStore):
    """A store that fails while `is_broken`, after `waits_s` seconds in the thread that asks it."""

    def __init__(self, path: Path, waits_s: float = 0.0) -> None:
        super().__init__(path)
        self.is_broken, self.waits_s = False, waits_s

    def _fail(self) -> None:
        if self.is_broken:
            time.sleep(self.waits_s)
            raise StoreError("made up by the test")

    def register(self, entries: object) -> None:
        self._fail()
        super().register(entries)  # type: ignore[arg-type]

    def claim(self, sub_task_id: str) -> CorrelationEntry | None:
        self._fail()
        return super().claim(sub_task_id)


def test_a_file_that_is_gone_is_an_error_of_the_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "p.db")
    store._connection.execute("DROP TABLE pending")
    for use in (lambda: store.register([ENTRY]), lambda: store.claim("s/1"), lambda: store.extend("s/1", 0)):
        with pytest.raises(StoreError, match="cannot be used"):
            use()
    store.close()


@pytest.mark.parametrize("breaks", ["before the claim", "after the claim", "for the first claim only"])
def test_while_the_store_fails_the_first_news_in_this_process_decides_and_nobody_after_it(
    breaks: str, tmp_path: Path
) -> None:
    store = Broken(tmp_path / "p.db")
    correlator, delivered = Correlator(store), list[tuple[PeerResult, ...]]()
    correlator.begin([ENTRY], delivered.append)
    store.is_broken = breaks != "after the claim"
    assert correlator.answered(ENTRY, {"text": "found"}) is None
    store.is_broken = breaks != "for the first claim only"
    assert correlator.timed_out(ENTRY) is None
    assert not correlator.send_failed(ENTRY, "late")
    ((result,),) = delivered
    assert (result.outcome, dict(result.payload)) == ("completed", {"text": "found"})
    store.close()


class Silent:
    """Peers that never answer."""

    async def send(self, *_: object) -> AsyncIterator[PeerNews]:
        await asyncio.sleep(10.0)
        yield PeerNews("ended", "")

    async def cancel(self, *_: object) -> str:
        return "accepted"


CALLS = [PeerCall(f"call_{number}", f"reader_{number}", {}) for number in (1, 2)]


def caller_over(store: SqliteStore) -> PeerCaller:
    timeouts = PeerTimeouts(timeout_s=0.1, hard_cap_s=0.1, cancel_s=0.1, listen_s=0.1)
    return PeerCaller(Silent(), Correlator(store), timeouts)  # type: ignore[arg-type]


def test_calls_are_not_sent_when_the_store_does_not_take_them(tmp_path: Path) -> None:
    store = Broken(tmp_path / "p.db")
    store.is_broken = True
    results = asyncio.run(caller_over(store).call(CALLS, step="0", logical_task_id="run"))
    assert [(result.outcome, result.error) for result in results] == [("send_failed", "made up by the test")] * 2
    store.close()


@pytest.mark.wall
@pytest.mark.parametrize("is_cancelled", [False, True], ids=["timeouts", "a cancelled parent"])
def test_a_file_that_stands_still_loses_no_decision_and_blocks_no_loop(is_cancelled: bool, tmp_path: Path) -> None:
    store = Broken(tmp_path / "p.db", waits_s=0.5)
    gaps: list[float] = []

    async def look_on() -> None:
        while True:
            at = time.monotonic()
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - at)

    async def main() -> list[str]:
        caller = caller_over(store)
        looking = asyncio.create_task(look_on())
        calling = asyncio.create_task(caller.call(CALLS, step="0", logical_task_id="run"))
        await asyncio.sleep(0.05)
        store.is_broken = True
        if is_cancelled:
            calling.cancel()
        (results,) = await asyncio.gather(calling, return_exceptions=True)
        await caller.idle()
        looking.cancel()
        return ["cancelled"] if isinstance(results, BaseException) else [result.outcome for result in results]

    assert asyncio.run(main()) == (["cancelled"] if is_cancelled else ["timed_out", "timed_out"])
    # A loop that waited for the file itself would stand still for half a second.
    assert max(gaps) < 0.4
    store.close()
