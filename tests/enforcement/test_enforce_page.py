"""The page on enforcement: its snippets run, and do what it says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from held_graphs import async_graph, upstream_of
from served_in_loop import caller_of
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.alternatives.enforcement import Result
from docmind_lab.alternatives.enforcement.hooks import installed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "enforce.md").read_text(encoding="utf-8")


@pytest.fixture
def names(stub: Callable[..., StubServer]) -> Iterator[dict[str, Any]]:
    """What the page's snippets define, run one after the other as a reader would."""
    _, url = upstream_of(stub)
    with httpx.Client(trust_env=False) as client, httpx.Client() as metrics_client:
        defined: dict[str, Any] = {
            "__name__": "enforce_page",
            "graph": async_graph(url),
            "client": client,
            "url": f"{url}/ok",
            "metrics_client": metrics_client,
        }
        for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
            exec(compile(snippet, "docs/enforce.md", "exec"), defined)
        yield defined
    dl.uninstall()


def test_the_agent_of_the_page_answers_and_streams(names: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    given = {"path": "/ok", "log": []}
    assert asyncio.run(names["answer"](given, None)) == ("answered", {"path": "/ok", "log": ["plan", "ok"]})
    assert asyncio.run(names["stream"](given, None)).outcome == "answered"
    assert "{'plan': {'log': ['plan']}}" in capsys.readouterr().out
    assert names["quicker"].decision_timeout_s == 5
    assert names["found"] == ()
    assert asyncio.run(names["served"].ainvoke(given))["log"] == ["plan", "ok"]


def test_the_service_of_the_page_answers(names: dict[str, Any]) -> None:
    async def ask() -> httpx.Response:
        async with caller_of(names["app"]) as client:
            return await client.post("/ask", json={"path": "/ok", "log": []})

    answer = asyncio.run(ask())
    assert (answer.status_code, answer.json()["log"]) == (200, ["plan", "ok"])


def test_the_block_of_the_page_is_held_and_its_hooks_are_gone_at_the_end(names: dict[str, Any]) -> None:
    assert 0 < names["left"] <= 20
    assert dl.remaining_s() is None
    assert installed() == ()


def test_the_page_names_each_field_of_a_result() -> None:
    fields = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    of_telemetry = {
        "limit_s",
        "remaining_at_start_s",
        "elapsed_s",
        "requests_cut",
        "alternative",
        "alternative_options",
    }
    assert fields == set(Result.__dataclass_fields__) - of_telemetry
