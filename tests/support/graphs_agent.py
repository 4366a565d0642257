"""A plain agent with two tools and LangChain's own retries around its model and its tools."""

from __future__ import annotations

import time
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, ToolRetryMiddleware
from langchain_openai import ChatOpenAI


def search(query: str) -> str:
    """Search the handbook."""
    time.sleep(0.4)
    return f"Handbook on {query}: a deadline is an instant, and a budget is a number of seconds."


def remember(text: str) -> str:
    """Keep a note."""
    return f"Noted {len(text)} characters."


def make() -> Any:
    """The compiled agent."""
    return create_agent(
        ChatOpenAI(model="gpt-4.1", api_key="sk-of-the-user", max_retries=2),
        tools=[search, remember],
        system_prompt="You are a helpful assistant. Look things up before you say anything.",
        middleware=[ModelRetryMiddleware(max_retries=3), ToolRetryMiddleware(max_retries=3)],
    )
