"""Somebody's application, for notebook 10: it knows nothing of this project.

`graph` is an agent as one writes it; in `repaired` what stood in the way of a deadline is gone.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

_FOUND = "A deadline is an instant; a budget is a number of seconds."


def look_up(query: str) -> str:
    """Look something up, over a driver that waits for its database."""
    time.sleep(2.0)
    return f"{query}: {_FOUND}"


async def look_up_async(query: str) -> str:
    """Look something up, over a driver that awaits its database."""
    await asyncio.sleep(2.0)
    return f"{query}: {_FOUND}"


def graph() -> Any:
    """An agent whose tool blocks, and whose model is tried again by its client and by a middleware."""
    return _agent(StructuredTool.from_function(look_up), retries=2)


def repaired() -> Any:
    """The same with a tool that can be cancelled."""
    return _agent(StructuredTool.from_function(look_up, look_up_async), retries=0)


def _agent(tool: StructuredTool, retries: int) -> Any:
    return create_agent(
        ChatOpenAI(model="gpt-4.1-mini", api_key="not used", max_retries=retries),
        tools=[tool],
        system_prompt="You are a helpful assistant. Look things up before you say anything.",
        middleware=[ModelRetryMiddleware(max_retries=retries)],
    )
