"""A retry in a thread that goes on after the deadline. Mended: the node itself tries again, and waits for the end."""

import threading
import time
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "begins", [{"host": "down"}]


class State(TypedDict, total=False):
    host: str
    answer: str


def ping(host: str) -> None:
    for pause_s in (0.2, 0.4, 0.8):
        if httpx.get(f"https://{host}.example.com/ping").status_code < 500:
            return
        time.sleep(pause_s)


def agent(in_thread: bool) -> Any:
    def wake(state: State) -> dict[str, Any]:
        if in_thread:
            threading.Thread(target=ping, args=(state["host"],)).start()
        else:
            ping(state["host"])
        time.sleep(0.2)
        return {}

    def answer(state: State) -> dict[str, Any]:
        time.sleep(2.5)
        return {"answer": "done"}

    builder = StateGraph(State)
    builder.add_node("wake", wake)
    builder.add_node("answer", answer)
    builder.add_edge(START, "wake")
    builder.add_edge("wake", "answer")
    return builder.compile()


def broken() -> Any:
    return agent(in_thread=True)


def mended() -> Any:
    return agent(in_thread=False)
