"""Thousands of enforced runs under faults and cancellations leave nothing behind (enforce.md 5)."""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from held_graphs import async_graph, sync_graph, wait_until

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.call import EnforcedCall
from docmind_lab.core.holds import Hold, current_hold

SERVICE = Path(__file__).parents[2] / "examples" / "service"
AT_ONCE = 50


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    """The example's upstream in a process of its own, so that it takes no time from the callers."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    program = [sys.executable, "-m", "uvicorn", "upstream:app", "--port", str(port), "--log-level", "critical"]
    process = subprocess.Popen(program, cwd=SERVICE)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/log", trust_env=False).is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, 60)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def limits_of(connections: int) -> httpx.Limits:
    """Idle connections go well before the server's own five seconds, at which both would race for one."""
    return httpx.Limits(max_connections=connections, keepalive_expiry=1.0)


class Soak:
    """Runs of agents over one blocking and one async client, each with a trouble and a way to end, drawn by number."""

    def __init__(self, url: str, at_once: int) -> None:
        self.blocking = httpx.Client(timeout=None, trust_env=False, limits=limits_of(at_once))
        self._at_once = at_once
        self.late_s: list[float] = []
        self.longest_pause_s = 0.0
        self.ends: Counter[str] = Counter()
        self._url = url

    async def run(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="soak")
        loop.set_default_executor(pool)
        limits = limits_of(2 * self._at_once)
        async with httpx.AsyncClient(timeout=None, trust_env=False, limits=limits) as client:
            graphs = {
                "async": async_graph(self._url, client),
                "sync": sync_graph(self._url, lambda url: self.blocking.get(url).text),
            }
            slots = asyncio.Semaphore(self._at_once)

            async def one(number: int) -> None:
                async with slots:
                    await self._one(number, graphs)

            watching = asyncio.create_task(self._watch_pauses())
            await asyncio.gather(*(one(number) for number in range(count)))
            watching.cancel()
        self.blocking.close()

    async def _watch_pauses(self) -> None:
        """Note how long the loop does nothing: for a full garbage collection (0.2 s here), or another process."""
        while True:
            slept_at = time.monotonic()
            await asyncio.sleep(0.01)
            self.longest_pause_s = max(self.longest_pause_s, time.monotonic() - slept_at - 0.01)

    async def _one(self, number: int, graphs: dict[str, Any]) -> None:
        draw = random.Random(number)
        kind, letter = draw.choice((("async", "A"), ("async", "C"), ("async", "E"), ("sync", "A"), ("sync", "E")))
        how = draw.choices(("/quick", "/hang", "/trickle"), (3, 4, 3))[0]
        way = draw.choices(("whole", "task", "event", "stream", "closed"), (6, 1, 1, 1, 1))[0]
        agent = dl.enforce(graphs[kind], draw.uniform(0.3, 0.9), letter)
        given: Any = {"path": how, "log": []}
        if way == "task":
            task = asyncio.create_task(agent.ainvoke(given))
            await asyncio.sleep(draw.uniform(0, 0.1))
            task.cancel()
            self.ends["cancelled" if isinstance(await asyncio.gather(task, return_exceptions=True), list) else ""] += 1
            return
        if way == "closed":
            stream = agent.astream(given)
            async for _ in stream:
                break
            await stream.aclose()
            self.ends["closed"] += 1
            return
        if way == "stream":
            stream = agent.astream(given)
            async for _ in stream:
                pass
            result = stream.result
        else:
            left = asyncio.sleep(draw.uniform(0, 0.1)) if way == "event" else None
            result = await agent.ainvoke(given, cancel=left)
        self.ends[f"{result.outcome} {how}"] += 1
        if result.stop_reason != "caller_left":
            self.late_s.append(result.overrun_s)


def soaked(url: str, count: int, at_once: int = AT_ONCE) -> Soak:
    soak = Soak(url, at_once)
    asyncio.run(soak.run(count))
    return soak


def left_behind() -> dict[str, int]:
    """What a process has of each thing that could be left behind."""
    gc.collect()
    process = psutil.Process()
    return {
        "threads": threading.active_count(),
        "sockets": len(process.net_connections()),
        "files": process.num_fds(),
        "calls": sum(isinstance(each, EnforcedCall | Hold) for each in gc.get_objects()),
    }


def check(soak: Soak, before: dict[str, int], count: int) -> None:
    wait_until(lambda: left_behind() == before, 30)
    assert current_hold() is None
    assert soak.ends.total() == count
    assert soak.ends["answered /hang"] == soak.ends["answered /trickle"] == 0
    median_s, worst_s = statistics.median(soak.late_s), max(soak.late_s)
    print(f"{count:,} runs, late at the median {median_s:.4f} s, at worst {worst_s:.4f} s;", dict(soak.ends))
    print(f"longest pause of the loop {soak.longest_pause_s:.4f} s")


@pytest.mark.wall
@pytest.mark.full
def test_ten_thousand_runs_under_faults_leave_nothing_behind_and_memory_does_not_grow(upstream: str) -> None:
    soaked(upstream, 1000)
    before, used = left_behind(), psutil.Process().memory_info().rss
    soak = soaked(upstream, 10_000)
    check(soak, before, 10_000)
    grown_mb = (psutil.Process().memory_info().rss - used) / 1e6
    print(f"memory grew by {grown_mb:.1f} MB")
    # Ten times the warm-up; what is kept of each run would be thousands of times its kilobytes.
    assert grown_mb < 20
    assert statistics.median(soak.late_s) < 0.05
    # A cut may wait for the loop, and then for a thread; each may fall into a pause of the process.
    assert max(soak.late_s) < 0.25 + 2 * soak.longest_pause_s


@pytest.mark.wall
@pytest.mark.full
@pytest.mark.parametrize("letter", ["A", "C", "E"])
def test_five_hundred_runs_at_once_are_cut_in_time(letter: str, upstream: str) -> None:
    """They begin one after the other, as requests do, and hang: each is cut while five hundred others wait."""

    async def crowd() -> tuple[list[float], int]:
        limits = limits_of(1000)
        async with httpx.AsyncClient(timeout=None, trust_env=False, limits=limits) as client:
            agent = dl.enforce(async_graph(upstream, client), 10.0, letter)
            under_way = most = 0
            late_s: list[float] = []

            async def one() -> None:
                nonlocal under_way, most
                under_way += 1
                most = max(most, under_way)
                result = await agent.ainvoke({"path": "/hang", "log": []})
                under_way -= 1
                assert result.outcome == "partial"
                late_s.append(result.overrun_s)

            tasks = []
            for _ in range(750):
                tasks.append(asyncio.create_task(one()))
                await asyncio.sleep(0.016)
            await asyncio.gather(*tasks)
        return late_s, most

    late_s, most = asyncio.run(crowd())
    print(
        f"{letter}: {most} at once, late at the median {statistics.median(late_s):.4f} s, at worst {max(late_s):.4f} s"
    )
    assert most >= 500
    assert statistics.median(late_s) < 0.05
