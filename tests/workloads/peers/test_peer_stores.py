"""Exactly one party gets an entry, whatever keeps it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import fakeredis
import pytest

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.peers.correlation import CorrelationEntry
from docmind_lab.systems.peers.stores import CorrelationStore, RedisStore, SqliteStore

ENTRY = CorrelationEntry("s/1", "call_1", {"position": "0.0"}, "ask_reader_1", "reader_1", "task", "task/0", 8.0)


def entry(name: str) -> CorrelationEntry:
    return replace(ENTRY, sub_task_id=name)


@pytest.fixture(params=["in_process", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CorrelationStore]:
    made: dict[str, Callable[[], CorrelationStore]] = {
        "in_process": SqliteStore,
        "sqlite": lambda: SqliteStore(tmp_path / "pending.db"),
        "redis": lambda: RedisStore(fakeredis.FakeRedis()),
    }
    store = made[request.param]()
    yield store
    store.close()


def test_a_claim_removes_the_entry_and_returns_it_whole(store: CorrelationStore) -> None:
    store.register([ENTRY])
    assert store.claim("s/1") == ENTRY
    assert store.claim("s/1") is None
    assert store.pending() == ()


def test_of_many_threads_that_claim_one_entry_exactly_one_gets_it(store: CorrelationStore) -> None:
    names = [f"s/{number:03}" for number in range(40)]
    store.register([entry(name) for name in names])
    got: list[CorrelationEntry | None] = []

    def claim_all() -> None:
        got.extend(store.claim(name) for name in names)

    threads = [threading.Thread(target=claim_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found.sub_task_id for found in got if found is not None) == names


def test_all_calls_of_a_step_are_registered_or_none(store: CorrelationStore) -> None:
    store.register([entry("s/2")])
    with pytest.raises(ConfigurationError, match="pending already"):
        store.register([entry("s/1"), entry("s/2"), entry("s/3")])
    assert store.pending() == ("s/2",)


def test_an_extension_counts_for_a_pending_entry_only_and_from_what_was_seen(store: CorrelationStore) -> None:
    store.register([ENTRY])
    assert store.extend("s/1", 0)
    assert not store.extend("s/1", 0)  # somebody has extended it since
    assert store.extend("s/1", 1)
    claimed = store.claim("s/1")
    assert claimed is not None
    assert claimed.extensions == 2
    assert not store.extend("s/1", 2)


def test_no_key_of_redis_expires(tmp_path: Path) -> None:
    server = fakeredis.FakeRedis()
    RedisStore(server).register([ENTRY])
    assert [server.ttl(key) for key in server.scan_iter()] == [-1]  # -1: no expiry


def test_two_connections_to_one_file_share_its_entries(tmp_path: Path) -> None:
    one, other = SqliteStore(tmp_path / "p.db"), SqliteStore(tmp_path / "p.db")
    one.register([ENTRY])
    assert other.claim("s/1") == ENTRY
    assert one.claim("s/1") is None
    one.close()
    other.close()


_CLAIMER = """
import sys
from docmind_lab.systems.peers.stores import SqliteStore
store = SqliteStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(*(name for name in sys.argv[2:] if store.claim(name) is not None))
"""


@pytest.mark.full
def test_of_several_processes_that_claim_one_entry_exactly_one_gets_it(tmp_path: Path) -> None:
    names = [f"s/{number:03}" for number in range(200)]
    store = SqliteStore(tmp_path / "p.db")
    store.register([entry(name) for name in names])
    command = [sys.executable, "-c", _CLAIMER, str(tmp_path / "p.db"), *names]
    pipe = subprocess.PIPE
    claimers = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(3)]
    for claimer in claimers:
        assert claimer.stdout is not None
        assert claimer.stdout.readline() == "ready\n"
    said = []
    for claimer in claimers:
        assert claimer.stdin is not None
        claimer.stdin.write("\n")
        claimer.stdin.flush()
    for claimer in claimers:
        said += claimer.communicate(timeout=60)[0].split()
    assert sorted(said) == names
    store.close()
