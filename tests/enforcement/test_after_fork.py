"""Processes forked from one that has enforced something: gunicorn --preload, multiprocessing, os.fork."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from forked_workers import two_workers
from often import often
from stub_server import StubConnection, StubRequest, StubServer

from docmind_lab.alternatives import event_loop
from docmind_lab.alternatives.event_loop import shared_loop

Stub = Callable[..., StubServer]
SUPPORT = Path(__file__).parents[1] / "support"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# A process that hangs does so for ever; a loaded machine takes a while to import the stack.
ENDS_WITHIN_S = 600


def echo(request: StubRequest, connection: StubConnection) -> None:
    body = request.path.encode()
    if is_slow(int(body[1:])):
        connection.pause(SLOW_S)
    connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "UPSTREAM": url, "PYTHONPATH": str(SUPPORT)}


# As the program has them, which cannot be imported: it asks its upstream at once.
SLOW_S = 0.8


def is_slow(number: int) -> bool:
    return number % 50 == 4


def forked(stub: Stub, how: str, calls: int) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(SUPPORT / "forking_program.py"), how, str(calls)],
        env=environment(stub(echo).url),
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_WITHIN_S,
    )
    return (ended.stdout + ended.stderr).strip()


@pytest.mark.wall
@pytest.mark.parametrize("how", often(["fork", "multiprocessing"], "fork"))
def test_a_forked_process_answers_under_every_alternative_on_connections_of_its_own(stub: Stub, how: str) -> None:
    """wall: as below, with three requests of each client."""
    assert forked(stub, how, calls=3) == "ok"


# In each of two processes, with each of four clients.
CALLS_OF_A_THOUSAND = 1000 // 8


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.parametrize("how", ["fork", "multiprocessing"])
def test_forked_processes_answer_a_thousand_requests_under_each_alternative_and_none_late(stub: Stub, how: str) -> None:
    """wall: none is late by more than 0.25 s, where an answer that was waited for would be 0.6 s late."""
    assert forked(stub, how, calls=CALLS_OF_A_THOUSAND) == "ok"


@pytest.mark.full
def test_a_forked_process_answers_though_a_thread_of_its_parent_had_every_lock(stub: Stub) -> None:
    assert forked(stub, "locked", calls=1) == "ok"


@pytest.fixture
def workers(stub: Stub, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client of gunicorn with two workers, forked from a process that has asked under every alternative."""
    variables = {**environment(stub(echo).url), "WARM": "1"}
    with two_workers("forking_program:application", tmp_path, variables, ENDS_WITHIN_S) as client:
        yield client


@pytest.mark.wall
@pytest.mark.parametrize("calls", [3, pytest.param(250, marks=pytest.mark.full)])
def test_both_workers_of_gunicorn_answer_under_every_alternative_and_never_late(
    workers: httpx.Client, calls: int
) -> None:
    """wall: as above, with a thousand requests under each alternative at full counts."""
    clients = ["httpx", "httpx2", "requests", "transport"]
    asked = [(name, letter, number) for number in range(calls) for name in clients for letter in "ABCDEF"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda each: workers.get("http://app/{}/{}/{}".format(*each)), asked))
    assert {(answer.status_code, answer.text) for answer in answers} == {(200, "")}
    by_worker = {(letter, got.headers["x-worker"]) for (_, letter, _), got in zip(asked, answers, strict=True)}
    assert len(by_worker) == 12, "each of two workers under each of six alternatives"


def test_a_loop_that_was_stopped_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    async def one() -> int:
        return 1

    # A loop of this test's own: clients of other tests belong to the process's.
    monkeypatch.setattr(event_loop, "_shared", None)
    before = shared_loop()
    before._loop.call_soon_threadsafe(before._loop.stop)
    before._thread.join(5)
    after = shared_loop()
    assert after is not before
    assert after.run(one()) == 1
    before._loop.close()
