"""A store that a thread of nobody's writes to after the caller was told. Mended: the node waits for its thread."""

import threading
import time
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

INVARIANT, INPUTS = "checkpoint", [{"name": "Ada"}]


class State(TypedDict, total=False):
    name: str
    greeting: str


def agent(waits: bool) -> Any:
    def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
        def write() -> None:
            time.sleep(0.5)
            store.put(("people",), state["name"], {"seen": True})

        thread = threading.Thread(target=write)
        thread.start()
        if waits:
            thread.join()
        return {}

    def greet(state: State) -> dict[str, Any]:
        report = httpx.get("https://slow.example.com/report").json()["report"]
        return {"greeting": f"Good morning, {state['name']}: {report}"}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_node("greet", greet)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "greet")
    return builder.compile()


def broken() -> Any:
    return agent(waits=False)


def mended() -> Any:
    return agent(waits=True)
