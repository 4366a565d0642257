"""A heartbeat that nobody stops when the work beside it is cut. Mended: it is stopped whatever happens."""

import threading
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "leftovers", [{"about": "harbour"}]


class State(TypedDict, total=False):
    about: str
    report: str


def agent(is_safe: bool) -> Any:
    def read(state: State) -> dict[str, Any]:
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(5.0):
                pass

        threading.Thread(target=beat, daemon=True).start()
        if not is_safe:
            report = httpx.get("https://slow.example.com/report").json()["report"]
            stop.set()
            return {"report": report}
        try:
            return {"report": httpx.get("https://slow.example.com/report").json()["report"]}
        finally:
            stop.set()

    return StateGraph(State).add_node("read", read).add_edge(START, "read").compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
