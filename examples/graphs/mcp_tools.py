"""An agent whose tools are those of an MCP server, which is a program beside it."""

import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

SERVER = Path(__file__).parents[1] / "mcp_server.py"


async def graph():
    client = MultiServerMCPClient({"library": {"command": sys.executable, "args": [str(SERVER)], "transport": "stdio"}})
    return create_agent(ChatOpenAI(model="gpt-4.1-mini"), await client.get_tools())
