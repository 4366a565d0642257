"""A team made with the langgraph-supervisor package, as its README makes one; nothing in it knows of the lab."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor

model = ChatOpenAI(model="gpt-4o-mini", api_key="sk-of-the-user")


def look_up(query: str) -> str:
    """Look something up in the encyclopedia."""
    return f"Encyclopedia on {query}: a with statement calls __enter__ before its block, and __exit__ after it."


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def make() -> Any:
    """The compiled team."""
    reader = create_agent(
        model, tools=[look_up], name="reading_expert", system_prompt="You read. Always use one tool at a time."
    )
    counter = create_agent(model, tools=[add], name="counting_expert", system_prompt="You count.")
    team = create_supervisor(
        [reader, counter],
        model=model,
        prompt="You manage a reading expert and a counting expert. Give each one task, one after the other.",
    )
    return team.compile(checkpointer=InMemorySaver(), name="team")


team = make()
