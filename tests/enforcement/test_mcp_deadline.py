"""The deadline in MCP requests, with the SDK's own client and server."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import REQUEST_TIMEOUT
from served_in_loop import served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from docmind_lab.alternatives.enforcement.scope import deadline, remaining_s
from docmind_lab.alternatives.enforcement.wire.mcp import ToolDeadline, deadline_meta, with_deadlines
from docmind_lab.alternatives.enforcement.wire.server_limits import METADATA_KEY

# A busy machine between the request and the tool, or between the deadline and the answer.
BUSY_S = 3.0


class Noted:
    """What the tools of a server saw."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.meta: list[dict[str, Any]] = []


def server_of(noted: Noted, **options: Any) -> MCPServer:
    server = MCPServer("held", version="1", middleware=[ToolDeadline(**options)])

    @server.tool()
    def hang_in_a_thread() -> str:
        time.sleep(0.5)
        noted.ended.append("thread done")
        return "late"

    @server.tool()
    async def broken() -> str:
        raise TimeoutError("a database, say")

    @server.tool()
    async def left(ctx: Context) -> str:
        noted.begun.append("left")
        noted.meta.append(dict(ctx.request_context.meta or {}))
        return str(remaining_s())

    @server.tool()
    async def hang() -> str:
        noted.begun.append("hang")
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            noted.ended.append("cancelled")
            raise
        return "late"

    @server.prompt()
    async def prompt() -> str:
        return str(remaining_s())

    @server.resource("left://now")
    async def resource() -> str:
        return str(remaining_s())

    return server


Use = Callable[[Client], Awaitable[Any]]


def over_http(server: MCPServer, use: Use) -> Any:
    """Use a client that sends deadlines to the server over a socket."""

    async def main() -> Any:
        async with (
            served(server.streamable_http_app(), lifespan=True) as url,
            Client(with_deadlines(streamable_http_client(f"{url}/mcp"))) as client,
        ):
            return await use(client)

    return asyncio.run(asyncio.wait_for(main(), 20))


def in_process(server: MCPServer, use: Use) -> Any:
    """Use a client of a server in this process, which sends nothing of itself."""

    async def main() -> Any:
        async with Client(server) as client:
            return await use(client)

    return asyncio.run(asyncio.wait_for(main(), 20))


def text_of(result: Any) -> str:
    return "".join(part.text for part in result.content)


def saying(milliseconds: object) -> Any:
    return {METADATA_KEY: milliseconds}


async def error_of(call: Awaitable[Any]) -> MCPError:
    with pytest.raises(MCPError) as raised:
        await call
    return raised.value


def test_a_request_carries_the_time_left_and_the_tool_is_held_to_it() -> None:
    noted = Noted()

    async def use(client: Client) -> str:
        async with deadline(20):
            return text_of(await client.call_tool("left", meta={"topic": "x"}))  # type: ignore[typeddict-unknown-key]

    seconds = float(over_http(server_of(noted), use))
    assert 20 - BUSY_S < seconds <= 20
    assert noted.meta[0]["topic"] == "x"
    assert 20_000 - 1000 * BUSY_S < noted.meta[0][METADATA_KEY] <= 20_000


def test_the_time_left_can_be_added_by_hand() -> None:
    noted = Noted()

    async def use(client: Client) -> None:
        assert deadline_meta() == {}
        async with deadline(20):
            await client.call_tool("left", meta=deadline_meta({"topic": "x"}))
            await client.call_tool("left", meta=deadline_meta(saying(700)))

    in_process(server_of(noted), use)
    assert noted.meta[0]["topic"] == "x"
    assert 20_000 - 1000 * BUSY_S < noted.meta[0][METADATA_KEY] <= 20_000
    # What the caller has written itself stays if it is nearer.
    assert noted.meta[1][METADATA_KEY] == 700


def test_prompts_and_resources_are_held_too_and_other_requests_are_not() -> None:
    async def use(client: Client) -> tuple[str, str, int]:
        prompt = await client.get_prompt("prompt")
        resource = await client.read_resource("left://now")
        return prompt.messages[0].content.text, resource.contents[0].text, len((await client.list_tools()).tools)

    prompt, resource, tools = in_process(server_of(Noted(), at_most_s=20), use)
    assert 20 - BUSY_S < float(prompt) <= 20
    assert 20 - BUSY_S < float(resource) <= 20
    assert tools == 4


def test_what_cannot_be_met_is_refused_at_once_and_the_tool_never_sees_it() -> None:
    noted = Noted()
    server = server_of(noted, at_most_s=20, transit_s=1)
    error = in_process(server, lambda client: error_of(client.call_tool("hang", meta=saying(900))))
    assert error.code == REQUEST_TIMEOUT
    assert error.data == {"type": "deadline_refused"}
    assert "tools/call hang: refused, because its caller waits for" in error.message
    assert noted.begun == []


@pytest.mark.wall
def test_a_tool_that_the_deadline_cuts_is_cancelled_and_answered_with_an_error() -> None:
    noted = Noted()

    async def use(client: Client) -> tuple[MCPError, str]:
        error = await error_of(client.call_tool("hang", meta=saying(60)))
        # The session goes on.
        return error, text_of(await client.call_tool("left"))

    begun_s = time.monotonic()
    error, after = in_process(server_of(noted), use)
    assert time.monotonic() - begun_s < 0.06 + 2 * BUSY_S
    assert (error.code, error.data) == (REQUEST_TIMEOUT, {"type": "deadline_exceeded"})
    assert "tools/call hang" in error.message
    assert noted.ended == ["cancelled"]
    assert after == "None"


@pytest.mark.wall
def test_a_tool_in_a_thread_is_answered_at_the_deadline_and_runs_on() -> None:
    noted = Noted()

    async def use(client: Client) -> list[str]:
        await error_of(client.call_tool("hang_in_a_thread", meta=saying(60)))
        return list(noted.ended)

    assert in_process(server_of(noted), use) == []


@pytest.mark.wall
@pytest.mark.parametrize("limit_ms", [60, 20_000], ids=["cut", "answered"])
def test_a_request_that_nobody_awaits_outlives_the_tool_that_left_it(limit_ms: int) -> None:
    """wall: the deadline passes under the request, which is answered after it."""
    ends: list[str] = []
    tasks: list[asyncio.Task[None]] = []

    async def slow(_: Request) -> Response:
        await asyncio.sleep(0.3)
        return Response("noted")

    async def use(client: Client) -> None:
        async with served(Starlette(routes=[Route("/", slow)])) as url:

            async def audit() -> None:
                async with httpx.AsyncClient(trust_env=False) as http:
                    ends.append((await http.get(url)).text)

            @server.tool()
            async def charge() -> str:
                tasks.append(asyncio.create_task(audit()))
                await asyncio.sleep(0 if limit_ms > 1000 else 30)
                return "charged"

            with contextlib.suppress(MCPError):
                await client.call_tool("charge", meta=saying(limit_ms))
            await asyncio.wait(tasks, timeout=10)

    server = server_of(Noted())
    in_process(server, use)
    assert ends == ["noted"]


def test_a_timeout_of_the_tools_own_is_no_deadline() -> None:
    result = in_process(server_of(Noted(), at_most_s=20), lambda client: client.call_tool("broken"))
    assert result.is_error
    assert text_of(result) == "Error executing tool broken"
