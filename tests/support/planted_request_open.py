"""A response that is opened, and not closed when the work beside it is cut. Mended: it is closed whatever happens."""

from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "leftovers", [{"about": "harbour"}]


class State(TypedDict, total=False):
    about: str
    report: str


def agent(is_safe: bool) -> Any:
    # As an application has it: for as long as the process lives, with what is open on it.
    client, opened = httpx.Client(), []

    def read(state: State) -> dict[str, Any]:
        response = client.send(client.build_request("GET", "https://slow.example.com/report"), stream=True)
        opened.append(response)
        try:
            httpx.get("https://slow.example.com/report")
            response.read()
        finally:
            if is_safe:
                response.close()
        return {"report": response.json()["report"]}

    return StateGraph(State).add_node("read", read).add_edge(START, "read").compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
