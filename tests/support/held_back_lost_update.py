"""Workers side by side that put their results into one list of the state. Mended: each returns its own."""

import operator
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send

INVARIANT, INPUTS = "resume", [{"items": ["ebb", "flow"]}]


class Shared(TypedDict, total=False):
    items: list[str]
    results: dict[str, int]
    total: int


class Merged(TypedDict, total=False):
    items: list[str]
    results: Annotated[dict[str, int], operator.or_]
    total: int


def agent(schema: Any, is_shared: bool) -> Any:
    def begin(state: Any) -> dict[str, Any]:
        time.sleep(0.1)
        return {"results": {}}

    def fan_out(state: Any) -> list[Send]:
        return [Send("count", {"item": item, "results": state["results"]}) for item in state["items"]]

    def count(task: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.1 * len(task["item"]))
        if is_shared:
            task["results"][task["item"]] = len(task["item"])
            return {}
        return {"results": {task["item"]: len(task["item"])}}

    def add(state: Any) -> dict[str, Any]:
        time.sleep(0.2)
        return {"total": sum(state["results"].values())}

    builder = StateGraph(schema)
    builder.add_node("begin", begin)
    builder.add_node("count", count)
    builder.add_node("add", add)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", fan_out, ["count"])
    builder.add_edge("count", "add")
    return builder.compile()


def broken() -> Any:
    return agent(Shared, is_shared=True)


def mended() -> Any:
    return agent(Merged, is_shared=False)
