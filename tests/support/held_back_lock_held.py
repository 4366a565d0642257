"""A lock of a client object that stays held when its request is cut. Mended: it is released."""

import threading
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph
from langgraph.types import Send

INVARIANT, INPUTS = "leftovers", [{"pages": ["a", "b"]}]


class State(TypedDict, total=False):
    pages: list[str]
    report: str


class Reader:
    def __init__(self, is_safe: bool) -> None:
        self.is_safe, self.turn = is_safe, threading.Lock()

    def read(self, task: dict[str, Any]) -> dict[str, Any]:
        if self.is_safe:
            with self.turn:
                httpx.get(f"https://slow.example.com/report?page={task['page']}")
            return {}
        self.turn.acquire()
        httpx.get(f"https://slow.example.com/report?page={task['page']}")
        self.turn.release()
        return {}


def agent(is_safe: bool) -> Any:
    reader = Reader(is_safe)

    def plan(state: State) -> dict[str, Any]:
        return {}

    def fan_out(state: State) -> list[Send]:
        return [Send("read", {"page": page}) for page in state["pages"]]

    def close(state: State) -> dict[str, Any]:
        return {"report": "all pages are read"}

    builder = StateGraph(State)
    builder.add_node("plan", plan)
    builder.add_node("read", reader.read)
    builder.add_node("close", close)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", fan_out, ["read"])
    builder.add_edge("read", "close")
    return builder.compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
