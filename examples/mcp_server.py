"""An MCP server with one tool in two ways, a plain function and a coroutine, and one that needs no network.

docmind-lab probe mcp "python examples/mcp_server.py" --tool fetch_sync --arguments '{"url": "{work}"}'
docmind-lab probe mcp "python examples/mcp_server.py" --tool fetch_async --arguments '{"url": "{work}"}'
python examples/mcp_server.py 8765      # over HTTP, at http://127.0.0.1:8765/mcp
"""

import sys

import httpx
from mcp.server.mcpserver import MCPServer

server = MCPServer("fetcher", version="1", log_level="WARNING")


@server.tool()
def fetch_sync(url: str) -> str:
    """Return the text at an address."""
    return httpx.get(url, timeout=60.0).text


@server.tool()
async def fetch_async(url: str) -> str:
    """Return the text at an address."""
    async with httpx.AsyncClient(timeout=60.0) as client:
        return (await client.get(url)).text


@server.tool()
def look_up(word: str) -> str:
    """Return what a word of the harbour means."""
    meanings = {"tug": "A tug pulls ships into the harbour.", "pilot": "A pilot guides ships through the channel."}
    known = [meaning for name, meaning in meanings.items() if name in word.lower()]
    return " ".join(known) or f"No entry for {word}; there are entries for {', '.join(meanings)}."


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run("stdio")
