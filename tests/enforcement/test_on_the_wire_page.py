"""The page on deadlines between processes: its snippets run, and do what it says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from served_in_loop import asked
from starlette.routing import Route

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.wire.server_limits import METADATA_KEY
from docmind_lab.core.duration_headers import DEADLINE_HEADER
from docmind_lab.network.deadline_headers import wire_in_force

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "on-the-wire.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def names() -> Iterator[dict[str, Any]]:
    """What the page's snippets define, run one after the other as a reader would."""
    # Classes and functions of a snippet look for the types of their annotations in their module.
    defined: dict[str, Any] = {"__name__": "on_the_wire"}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(snippet, "docs/on-the-wire.md", "exec"), defined)
    yield defined
    dl.uninstall()


def answer(app: Any, path: str, milliseconds: int) -> httpx.Response:
    return asyncio.run(asked(app, path, {DEADLINE_HEADER: str(milliseconds)}))


def test_the_header_goes_to_the_hosts_that_the_page_names(names: dict[str, Any]) -> None:
    assert 0 < int(names["headers"][DEADLINE_HEADER]) <= 20_000
    patterns = re.findall(r"^\| `([^`]+)` \| to ", PAGE, re.MULTILINE)
    wire = wire_in_force()
    assert wire is not None
    assert set(patterns) == set(wire.hosts)
    assert wire.names("a.svc.local", 80)
    assert not wire.names("svc.local", 80)


def test_the_application_of_the_page_refuses_and_holds(names: dict[str, Any]) -> None:
    names["app"].router.routes.append(Route("/ask", names["ask"]))
    assert answer(names["app"], "/ask", 90).status_code == 504
    held = answer(names["app"], "/ask", 9000)
    assert 0 < held.json()["remaining_s"] <= 8.98


def test_the_agents_of_the_page_are_made(names: dict[str, Any]) -> None:
    assert names["client"] is not None
    assert isinstance(names["executor"], names["AgentExecutor"])
    assert f"`{METADATA_KEY}`" in PAGE


def test_the_tool_of_the_page_is_held(names: dict[str, Any]) -> None:
    async def main() -> str:
        async with Client(names["server"]) as client:
            async with names["dl"].deadline(5):
                result = await client.call_tool("left", meta=names["deadline_meta"]())
            return "".join(part.text for part in result.content)

    assert 0 < float(asyncio.run(main())) <= 4.98
