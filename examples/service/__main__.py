"""Start the service and its upstream, try both ways to hold the deadline, and print a table: `python examples/service`.

Callers: the median of seconds after the deadline at which twelve callers had their answers.
Next: seconds in which one more, ordinary request was answered right afterwards.
Upstream: seconds that the upstream was busy after the deadline, or after the client had left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

BUDGET_S = 1.0
CALLERS = 12
# What still goes on after this long is told as "more than".
PATIENCE_S = 6.0
WAYS = {"/ask-timeout": "asyncio.timeout", "/ask": "enforce"}


@dataclass(frozen=True)
class Row:
    """One way under one trouble; NaN where a figure says nothing."""

    way: str
    trouble: str
    callers_s: float
    next_s: float
    upstream_s: float


@contextlib.contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """Run the upstream and the service as processes; give their addresses."""
    here = Path(__file__).parent
    upstream_port, service_port = _free_port(), _free_port()
    upstream, service = f"http://127.0.0.1:{upstream_port}", f"http://127.0.0.1:{service_port}"
    environment = {**os.environ, "UPSTREAM_URL": upstream, "BUDGET_S": str(BUDGET_S)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "uvicorn", f"{module}:app", "--port", str(port), "--log-level", "warning"],
            cwd=here,
            env=environment,
        )
        for module, port in (("upstream", upstream_port), ("app", service_port))
    ]
    try:
        _wait_for(f"{upstream}/log")
        _wait_for(f"{service}/docs")
        yield upstream, service
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                # Threads that nobody can cancel keep a service alive.
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _wait_for(url: str) -> None:
    until_s = time.monotonic() + 60
    while True:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(url, trust_env=False)
            return
        if time.monotonic() > until_s:
            raise SystemExit(f"nothing answers at {url}")
        time.sleep(0.1)


async def trial(way: str, trouble: str, upstream: str, service: str) -> Row:
    """Have twelve callers meet a trouble, then one ordinary request, and watch the upstream."""
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S + 5) as client:

        async def ask(number: int) -> float:
            began_s = time.monotonic()
            await client.post(service + way, json={"how": trouble, "thread": f"{way}-{trouble}-{number}"})
            return time.monotonic() - began_s - BUDGET_S

        began_s = time.monotonic()
        late_s = await asyncio.gather(*(ask(number) for number in range(CALLERS)))
        next_s = await _seconds_of_next(client, service + way)
        busy_s = await _busy_after(client, upstream, began_s + BUDGET_S)
    return Row(WAYS[way], trouble, statistics.median(late_s), next_s, busy_s)


async def leaving(way: str, upstream: str, service: str) -> Row:
    """Have a client leave while its request hangs, and watch the upstream."""
    async with httpx.AsyncClient(trust_env=False, timeout=None) as watching:
        begun = (await watching.get(f"{upstream}/log")).json()["begun"]
        async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
            question = {"how": "hang", "thread": f"{way}-leaving"}
            request = asyncio.create_task(client.post(service + way, json=question))
            while (await watching.get(f"{upstream}/log")).json()["begun"] == begun:
                await asyncio.sleep(0.01)
            request.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await request
            left_at_s = time.monotonic()
        busy_s = await _busy_after(watching, upstream, left_at_s)
    return Row(WAYS[way], "client leaves", float("nan"), float("nan"), busy_s)


async def _seconds_of_next(client: httpx.AsyncClient, url: str) -> float:
    began_s = time.monotonic()
    response = await client.post(url, json={"how": "quick", "thread": "next"})
    return time.monotonic() - began_s if response.status_code == 200 else float("inf")


async def _busy_after(client: httpx.AsyncClient, upstream: str, at_s: float) -> float:
    """Return for how many seconds after an instant the upstream was busy; inf if it still is at the end of patience."""
    while time.monotonic() < at_s + PATIENCE_S:
        log = (await client.get(f"{upstream}/log")).json()
        if not log["open"]:
            return max(0.0, float(log["last_ended_at_s"]) - at_s)
        await asyncio.sleep(0.02)
    return float("inf")


def measure(ways: tuple[str, ...] = tuple(WAYS)) -> list[Row]:
    """Return a row for each way and trouble, measured on fresh processes for each."""
    rows = []
    for way in ways:
        for trouble in ("hang", "trickle", "leaves"):
            with servers() as (upstream, service):
                if trouble == "leaves":
                    rows.append(asyncio.run(leaving(way, upstream, service)))
                else:
                    rows.append(asyncio.run(trial(way, trouble, upstream, service)))
    return rows


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| way | trouble | callers late, median | next request | upstream busy |", "|---|---|---|---|---|"]
    for row in rows:
        callers, following, upstream = (_seconds(value) for value in (row.callers_s, row.next_s, row.upstream_s))
        lines.append(f"| {row.way} | {row.trouble} | {callers} | {following} | {upstream} |")
    return "\n".join(lines)


def _seconds(value: float) -> str:
    if value != value:
        return ""
    if value == float("inf"):
        return f"more than {PATIENCE_S:.0f} s"
    return f"{value:.2f} s"


if __name__ == "__main__":
    print(f"{CALLERS} callers at once, {BUDGET_S:g} s each:\n")
    print(table(measure()))
