"""Small graphs of one's own that a comparison must describe truly: one fails, one is async only, one interrupts."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    """What the graphs pass on."""

    question: str
    answer: str


def _of(node: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("work", node)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile(checkpointer=InMemorySaver())


def _fail(state: State) -> State:
    raise KeyError("the customer's name")


async def _wait(state: State) -> State:
    await asyncio.sleep(3.0)
    return {"answer": "done"}


def _ask(state: State) -> State:
    return {"answer": interrupt("Is that so?")}


failing = _of(_fail)
async_only = _of(_wait)
interrupting = _of(_ask)
