"""The deadline in MCP requests of a client of mcp 1 or 2, whichever is installed.

langchain-mcp-adapters needs mcp 1. `make test-old-mcp` runs these tests with both.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from held_graphs import wait_until
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from served_in_loop import served

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.wire.mcp import ToolDeadline, with_deadlines
from docmind_lab.alternatives.enforcement.wire.server_limits import METADATA_KEY
from docmind_lab.core.errors import ConfigurationError, DeadlineExceeded

IS_MCP_1 = importlib.metadata.version("mcp").startswith("1.")
HAS_ADAPTERS = importlib.util.find_spec("langchain_mcp_adapters") is not None
Server: Any
Context: Any
if IS_MCP_1:
    from mcp.server.fastmcp import Context  # type: ignore[import-not-found,no-redef]
    from mcp.server.fastmcp import FastMCP as Server
else:
    from mcp.server.mcpserver import Context  # type: ignore[no-redef]
    from mcp.server.mcpserver import MCPServer as Server


def server(ended: list[str]) -> Any:
    """A server with a tool that says what its request says of the time left, and one that never answers.

    It holds nothing: it hears of cancellations only. ended: gets what became of the tool that never answers.
    """
    made = Server("tools")

    @made.tool()
    async def left(ctx: Context) -> str:
        meta = ctx.request_context.meta
        entries = meta if meta is None or isinstance(meta, dict) else meta.model_extra
        return str((entries or {}).get(METADATA_KEY))

    @made.tool()
    async def hang() -> str:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("ended")
        return "late"

    return made


@contextlib.asynccontextmanager
async def sessions(ended: list[str], *, wrapped: bool) -> AsyncIterator[ClientSession]:
    """An open session with the server over a socket."""
    async with served(server(ended).streamable_http_app(), lifespan=True) as url:
        transport: Any = streamable_http_client(f"{url}/mcp")
        if wrapped:
            transport = with_deadlines(transport)
        async with transport as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            yield session


def run(use: Callable[[ClientSession], Awaitable[Any]], ended: list[str] | None = None, *, wrapped: bool = True) -> Any:
    async def main() -> Any:
        async with sessions([] if ended is None else ended, wrapped=wrapped) as session:
            return await use(session)

    return asyncio.run(asyncio.wait_for(main(), 30))


async def said(session: ClientSession) -> str:
    return "".join(part.text for part in (await session.call_tool("left", {})).content if part.type == "text")


async def tool_of(session: ClientSession, name: str) -> BaseTool:
    """Return a tool of the server as LangChain has it, by langchain-mcp-adapters where that is installed."""
    if HAS_ADAPTERS:
        from langchain_mcp_adapters.tools import load_mcp_tools

        tools: list[BaseTool] = await load_mcp_tools(session)
        return next(each for each in tools if each.name == name)

    async def call() -> str:
        """Call the tool."""
        result = await session.call_tool(name, {})
        return "".join(part.text for part in result.content if part.type == "text")

    return StructuredTool.from_function(coroutine=call, name=name)


def graph_of(tool: BaseTool) -> Any:
    tools = ToolNode([tool])
    return StateGraph(MessagesState).add_node("tools", tools).add_edge(START, "tools").add_edge("tools", END).compile()


def asks_for(name: str) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=[{"name": name, "args": {}, "id": "1"}])]}


def test_a_session_tells_its_server_the_time_left_inside_a_deadline_only() -> None:
    async def use(session: ClientSession) -> tuple[str, str]:
        async with dl.deadline(20):
            inside = await said(session)
        return inside, await said(session)

    inside, outside = run(use)
    # 5 s: a busy machine between the start of the block and the request.
    assert 15_000 < int(inside) <= 20_000
    assert outside == "None"


@pytest.mark.wall
def test_a_call_is_cut_where_it_is_awaited_its_tool_is_cancelled_and_the_session_goes_on() -> None:
    ended: list[str] = []

    async def use(session: ClientSession) -> str:
        with pytest.raises(DeadlineExceeded):
            async with dl.deadline(0.2):
                await session.call_tool("hang", {})
        if not IS_MCP_1:  # whose client does not tell its server
            await asyncio.to_thread(wait_until, lambda: ended == ["ended"])
        return await said(session)

    assert run(use, ended) == "None"


@pytest.mark.wall
@pytest.mark.parametrize("alternative", ["C", "E", "F"])
def test_a_tool_of_a_session_keeps_the_deadline_of_its_graph_and_the_session_goes_on(alternative: str) -> None:
    async def use(session: ClientSession) -> tuple[str, str, Any]:
        hung = await dl.enforce(graph_of(await tool_of(session, "hang")), 0.3, alternative).ainvoke(asks_for("hang"))
        left = graph_of(await tool_of(session, "left"))
        answered = await dl.enforce(left, 20, alternative).ainvoke(asks_for("left"))
        return hung.outcome, answered.outcome, answered.state["messages"][-1].text

    hung, answered, text = run(use)
    assert (hung, answered) == ("timed_out", "answered")
    if alternative == "E":
        assert 15_000 < int(text) <= 20_000


def test_an_open_session_that_no_deadline_reaches_is_named() -> None:
    async def found(session: ClientSession) -> list[str]:
        tool = await tool_of(session, "left")
        return [str(each) for each in dl.enforce(graph_of(tool), 20).check() if each.what == "open MCP session"]

    (only,) = run(found, wrapped=False)
    assert only.startswith("tools: open MCP session: the session sends for all calls, in tasks of its own")
    assert run(found) == []


@pytest.mark.skipif(not IS_MCP_1, reason="needs mcp 1")
def test_the_middleware_of_a_server_says_that_it_needs_mcp_2() -> None:
    with pytest.raises(ConfigurationError, match="ToolDeadline needs mcp 2"):
        ToolDeadline(at_most_s=20)
