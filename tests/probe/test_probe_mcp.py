"""MCP tools: whether their work stops when the caller gives up, seen where the work is done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest
from commands_here import said

from docmind_lab.core.errors import ConfigurationError, ServiceError
from docmind_lab.experiments.probe.mcp_tools import probe_mcp
from docmind_lab.services.server import bind

ROOT = Path(__file__).parents[2]
SERVER = f"{sys.executable} {ROOT / 'examples' / 'mcp_server.py'}"
# The work takes six seconds, and the caller waits two of them. One that is ended needs milliseconds, and when the
# session is closed the two seconds that the client gives the server's process to end.
ENDED_S = {"timeout": 1.0, "cancelled task": 1.0, "closed session": 3.5}

pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture
def over_http() -> Iterator[str]:
    listener = bind(0)
    port = listener.getsockname()[1]
    listener.close()
    with subprocess.Popen(
        [*SERVER.split(), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        url = f"http://127.0.0.1:{port}/mcp"
        for _ in range(300):
            try:
                httpx.get(url, timeout=1.0)
                break
            except httpx.TransportError:
                assert process.poll() is None
        yield url
        process.terminate()


def ends(trials: pd.DataFrame) -> dict[str, str]:
    return dict(zip(trials["way"], trials["work_ends"], strict=True))


@pytest.mark.full
@pytest.mark.wall
def test_the_work_of_a_coroutine_stops_in_each_way_over_stdio() -> None:
    trials = probe_mcp(SERVER, tool="fetch_async", arguments={"url": "{work}"}, repeats=1)
    assert ends(trials) == {"timeout": "at_once", "cancelled task": "at_once", "closed session": "at_once"}
    assert dict(zip(trials["way"], trials["cancel_sent"], strict=True)) == {
        "timeout": True,
        "cancelled task": True,
        "closed session": False,
    }
    assert all(after_s < ENDED_S[way] for way, after_s in zip(trials["way"], trials["work_after_s"], strict=True))
    assert set(trials["transport"]) == {"stdio"}


@pytest.mark.wall
@pytest.mark.full
def test_the_work_of_a_plain_function_goes_on_until_the_server_is_ended() -> None:
    trials = probe_mcp(SERVER, tool="fetch_sync", arguments={"url": "{work}"}, repeats=1)
    assert ends(trials) == {"timeout": "at_its_end", "cancelled task": "at_its_end", "closed session": "at_once"}


@pytest.mark.wall
@pytest.mark.full
def test_a_server_over_http_goes_on_with_a_plain_function(over_http: str) -> None:
    trials = probe_mcp(over_http, tool="fetch_sync", arguments={"url": "{work}"}, repeats=1)
    assert set(ends(trials).values()) == {"at_its_end"}
    assert set(trials["transport"]) == {"http"}


def test_arguments_without_the_address_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"arguments must hold \{work\}"):
        probe_mcp("python", tool="t", arguments={"url": "http://127.0.0.1"})


def test_a_program_that_is_no_mcp_server_is_named() -> None:
    with pytest.raises(ServiceError, match="does not answer as an MCP server"):
        probe_mcp(f"{sys.executable} -c pass", tool="t", arguments={"url": "{work}"}, repeats=1)


@pytest.mark.full
def test_a_tool_that_does_not_ask_the_address_is_named_with_what_its_caller_got() -> None:
    with pytest.raises(
        ServiceError, match=r"absent did not ask the address that \{work\} stands for within 2 s; .*absent"
    ):
        probe_mcp(SERVER, tool="absent", arguments={"url": "{work}"}, repeats=1)


def test_arguments_that_are_not_json_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, refused = said(capsys, "probe", "mcp", "python", "--tool", "t", "--arguments", "{work}")
    assert (code, "--arguments is not JSON" in refused) == (2, True)
