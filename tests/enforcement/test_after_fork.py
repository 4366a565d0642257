"""Processes forked from one that has enforced something: multiprocessing and os.fork; gunicorn in test_hosts_page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
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


# As the program has them, which cannot be imported: it asks its upstream at once.
SLOW_S = 0.8


def is_slow(number: int) -> bool:
    return number % 50 == 4


def forked(stub: Stub, how: str, calls: int) -> str:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(SUPPORT / "forking_program.py"), how, str(calls)],
        env={**os.environ, "UPSTREAM": stub(echo).url, "PYTHONPATH": str(SUPPORT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDS_WITHIN_S,
    )
    return (ended.stdout + ended.stderr).strip()


# In each of two processes, with each of four clients.
CALLS_OF_A_THOUSAND = 1000 // 8


@pytest.mark.wall
@pytest.mark.parametrize("how", often(["fork", "multiprocessing"], "fork"))
@pytest.mark.parametrize("calls", [2, pytest.param(CALLS_OF_A_THOUSAND, marks=pytest.mark.full)])
def test_forked_processes_answer_under_every_alternative_on_connections_of_their_own(
    stub: Stub, how: str, calls: int
) -> None:
    """wall: no answer is late by more than 0.25 s, where one that was waited for would be 0.6 s late."""
    assert forked(stub, how, calls) == "ok"


@pytest.mark.full
def test_a_forked_process_answers_though_a_thread_of_its_parent_had_every_lock(stub: Stub) -> None:
    assert forked(stub, "locked", calls=1) == "ok"


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
