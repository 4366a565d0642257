"""A temporary file that stays when the request beside it is cut. Mended: it is removed whatever happens."""

import os
import tempfile
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "leftovers", [{"about": "harbour"}]


class State(TypedDict, total=False):
    about: str
    report: str


def agent(is_safe: bool) -> Any:
    def read(state: State) -> dict[str, Any]:
        handle, path = tempfile.mkstemp(suffix=".txt")
        os.close(handle)
        if not is_safe:
            report = httpx.get("https://slow.example.com/report").json()["report"]
            os.unlink(path)
            return {"report": report}
        try:
            return {"report": httpx.get("https://slow.example.com/report").json()["report"]}
        finally:
            os.unlink(path)

    return StateGraph(State).add_node("read", read).add_edge(START, "read").compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
