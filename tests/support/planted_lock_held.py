"""A lock that stays held when the request under it is cut. Mended: it is released whatever happens."""

import threading
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "leftovers", [{"about": "harbour"}]


class State(TypedDict, total=False):
    about: str
    report: str


def fetch() -> str:
    return str(httpx.get("https://slow.example.com/report").json()["report"])


def agent(is_safe: bool) -> Any:
    one_at_a_time = threading.Lock()

    def read(state: State) -> dict[str, Any]:
        if is_safe:
            with one_at_a_time:
                return {"report": fetch()}
        one_at_a_time.acquire()
        report = fetch()
        one_at_a_time.release()
        return {"report": report}

    return StateGraph(State).add_node("read", read).add_edge(START, "read").compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
