"""An agent whose tools are those of an MCP server: in this process, or wherever MCP_SERVER says.

MCP_SERVER is the address of a server over HTTP, or "stdio" for a program beside this one. Without it the server is
reached over the SDK's memory transport, which virtual time has too.
"""

import os
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from mcp import Client, StdioServerParameters

sys.path.insert(0, str(Path(__file__).parents[1]))
from mcp_server import server

WANTED = {"look_up"}


def target():
    place = os.environ.get("MCP_SERVER", "")
    if place == "stdio":
        return StdioServerParameters(command=sys.executable, args=[str(Path(__file__).parents[1] / "mcp_server.py")])
    return place or server


def tool_of(described):
    async def call(**arguments):
        async with Client(target()) as client:
            result = await client.call_tool(described.name, arguments)
            return "\n".join(part.text for part in result.content)

    return StructuredTool(
        name=described.name, description=described.description, args_schema=described.input_schema, coroutine=call
    )


async def graph():
    async with Client(server) as client:
        described = (await client.list_tools()).tools
    tools = [tool_of(each) for each in described if each.name in WANTED]
    return create_agent(ChatOpenAI(model="gpt-4.1-mini"), tools)
