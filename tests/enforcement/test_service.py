"""The worked example: a service whose upstream hangs or trickles, and whose client leaves (enforce.md 8)."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from script_modules import load_script

SERVICE = Path(__file__).parents[2] / "examples" / "service"
pytestmark = pytest.mark.wall
# Two shared cores, on which other tests run too; a quiet machine does each in a fifth of it.
BUSY_S = 0.5


@pytest.fixture(scope="module")
def example() -> Any:
    return load_script(SERVICE / "__main__.py", name="service_example")


@pytest.mark.full
def test_an_enforced_service_stays_well_when_its_upstream_does_not(example: Any) -> None:
    hang, trickle, leaves = example.measure(("/ask",))
    for row in (hang, trickle):
        assert row.callers_s < 0.15 + BUSY_S, row
        assert row.next_s < 0.5 + BUSY_S, row
        assert row.upstream_s < 0.2 + BUSY_S, row
    assert leaves.upstream_s < 0.1 + BUSY_S, leaves


@pytest.mark.full
def test_a_standard_timeout_leaves_the_service_and_its_upstream_busy(example: Any) -> None:
    hang, trickle, leaves = example.measure(("/ask-timeout",))
    assert [row.upstream_s for row in (hang, trickle, leaves)] == [float("inf")] * 3
    assert hang.next_s > 5


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
def test_a_service_that_is_stopped_ends_its_requests_within_its_budget(example: Any) -> None:
    with example.servers() as (upstream, service), httpx.Client(trust_env=False, timeout=10) as client:
        pid = int(client.get(f"{service}/pid").json())
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(httpx.post, f"{service}/ask", json={"how": "hang"}, trust_env=False, timeout=10)
            until = time.monotonic() + 5
            while not client.get(f"{upstream}/log").json()["open"]:
                assert time.monotonic() < until
            os.kill(pid, signal.SIGTERM)
            assert asked.result().status_code == 206
        until = time.monotonic() + 0.2 + BUSY_S
        while client.get(f"{upstream}/log").json()["open"]:
            assert time.monotonic() < until, "the upstream is still busy"
