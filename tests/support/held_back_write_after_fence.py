"""A task of an event loop that writes to the store after the caller was told. Mended: the node awaits it."""

import asyncio
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

INVARIANT, INPUTS = "checkpoint", [{"name": "Grace"}]


class State(TypedDict, total=False):
    name: str
    greeting: str


def agent(awaits: bool) -> Any:
    kept = set()

    async def write(store: BaseStore, name: str) -> None:
        await asyncio.sleep(0.7)
        await store.aput(("people",), name, {"seen": True})

    async def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
        if awaits:
            await write(store, state["name"])
        else:
            task = asyncio.create_task(write(store, state["name"]))
            kept.add(task)
            task.add_done_callback(kept.discard)
        return {}

    async def greet(state: State) -> dict[str, Any]:
        await asyncio.sleep(1.2)
        return {"greeting": f"Good evening, {state['name']}"}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_node("greet", greet)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "greet")
    return builder.compile()


def broken() -> Any:
    return agent(awaits=False)


def mended() -> Any:
    return agent(awaits=True)
