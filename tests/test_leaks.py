"""Many runs leave nothing behind: no thread, socket, task, child process or growing memory."""

from __future__ import annotations

import asyncio
import gc
import threading
import time

import psutil
import pytest
from laboratories import Laboratory, laboratory

from docmind_lab.alternatives import ALTERNATIVES
from docmind_lab.alternatives.event_loop import shared_loop

pytestmark = pytest.mark.wall

# Runs of about 0.25 s under budgets that cut about half of them, so that both ways out are taken.
PROFILE, TIMEOUT_S = "typical/200", 0.2
POOLED_CONNECTIONS = 4 * 20  # what four idle keep-alive pools may hold


def run_all(lab: Laboratory, repeats: int) -> None:
    alternatives = [kind() for kind in ALTERNATIVES.values()]
    lab.measure(alternatives, runs=repeats, decision_timeout_s=TIMEOUT_S, horizon_factor=20.0, side_by_side=2)


async def tasks_on_the_loop() -> int:
    return len(asyncio.all_tasks()) - 1


def threads_since(before: set[threading.Thread]) -> list[str]:
    """Threads that were started since; those of the shared loop's pool are there once and for all."""
    pool = shared_loop()._loop._default_executor  # type: ignore[attr-defined]
    pooled = set() if pool is None else pool._threads
    return [t.name for t in threading.enumerate() if t not in before | pooled and not t.name.startswith("asyncio_")]


def settled(check: object, limit_s: float = 5.0) -> bool:
    """Whether the check comes true; threads end a moment after their run does."""
    assert callable(check)
    limit_at = time.monotonic() + limit_s
    while not check() and time.monotonic() < limit_at:
        time.sleep(0.02)
    return bool(check())


@pytest.mark.parametrize("repeats", [2, pytest.param(12, marks=pytest.mark.full)])
def test_runs_of_every_alternative_leave_nothing_behind(repeats: int) -> None:
    process = psutil.Process()
    children = process.children(recursive=True)
    with laboratory(PROFILE) as lab:
        run_all(lab, 2)
        gc.collect()
        before, tasks = set(threading.enumerate()), shared_loop().run(tasks_on_the_loop())
        objects, memory = len(gc.get_objects()), process.memory_info().rss
        run_all(lab, repeats)
        assert settled(lambda: not threads_since(before)), threads_since(before)
        # The maker of a graph of an earlier test may be open in a task, until the process ends.
        assert shared_loop().run(tasks_on_the_loop()) <= tasks
        assert len(process.net_connections("tcp")) <= POOLED_CONNECTIONS
        assert not lab.workload.saver.storage, "checkpoints of finished runs are dropped"
        gc.collect()
        grown = (len(gc.get_objects()) - objects) / (repeats * len(ALTERNATIVES))
        # A run makes some 100,000 objects; a few left by caches that fill slowly are none of them.
        assert grown < 200, f"{grown:.0f} objects left by each run"
        assert process.memory_info().rss - memory < 100e6
    assert set(process.children(recursive=True)) <= set(children)
