"""A node that changes a list of the state in place, which no checkpoint holds. Mended: it returns what it adds."""

import operator
import time
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "resume", [{"topic": "tides", "notes": []}]


class InPlace(TypedDict, total=False):
    topic: str
    notes: list[str]
    summary: str


class Added(TypedDict, total=False):
    topic: str
    notes: Annotated[list[str], operator.add]
    summary: str


def agent(schema: Any, in_place: bool) -> Any:
    def note(text: str) -> Any:
        def node(state: Any) -> dict[str, Any]:
            time.sleep(0.2)
            if in_place:
                state["notes"].append(text)
                return {}
            return {"notes": [text]}

        return node

    def summarise(state: Any) -> dict[str, Any]:
        time.sleep(0.2)
        return {"summary": f"{state['topic']}: {', '.join(state['notes'])}"}

    builder = StateGraph(schema)
    builder.add_node("first", note("the moon"))
    builder.add_node("second", note("the sun"))
    builder.add_node("summarise", summarise)
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", "summarise")
    return builder.compile()


def broken() -> Any:
    return agent(InPlace, in_place=True)


def mended() -> Any:
    return agent(Added, in_place=False)
