"""An MCP server on stdio whose tools are held to what their requests say."""

from __future__ import annotations

import asyncio

from mcp.server.mcpserver import MCPServer

from docmind_lab.alternatives.enforcement.scope import remaining_s
from docmind_lab.alternatives.enforcement.wire.mcp import ToolDeadline

server = MCPServer("held", version="1", middleware=[ToolDeadline(at_most_s=20)])


@server.tool()
async def left() -> str:
    """Return the seconds left."""
    return str(remaining_s())


@server.tool()
async def hang() -> str:
    """Answer never."""
    await asyncio.sleep(30)
    return "late"


if __name__ == "__main__":
    server.run("stdio")
