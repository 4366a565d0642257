"""The user's own module of docs/hosts.md: a graph that asks UPSTREAM with one async client for the whole process."""

from __future__ import annotations

import os
from typing import Any, TypedDict

import httpx
from langgraph.graph import END, START, StateGraph

client = httpx.AsyncClient(trust_env=False, timeout=20)


class Asked(TypedDict, total=False):
    question: str
    answer: str


async def ask(state: Asked) -> Asked:
    return {"answer": (await client.get(f"{os.environ['UPSTREAM']}/{state['question'].strip('/')}")).text}


def compiled() -> Any:
    return StateGraph(Asked).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END).compile()


graph = compiled()
