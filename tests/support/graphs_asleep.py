"""Graphs with a sync node that asks nobody anything and only takes its time, alone and inside another node."""

from __future__ import annotations

import time
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

NAP_S = 0.6
"""How long the node sleeps, from the beginning of the run."""


class State(TypedDict, total=False):
    """What the nodes share."""

    question: str
    report: str


def nap(state: State) -> State:
    """Sync, without a call."""
    time.sleep(NAP_S)
    return {"report": "rested"}


def napping() -> Any:
    """One node."""
    graph = StateGraph(State)
    graph.add_node("nap", nap)
    graph.add_edge(START, "nap")
    graph.add_edge("nap", END)
    return graph.compile()


def inside() -> Any:
    """The same node inside another."""
    graph = StateGraph(State)
    graph.add_node("house", napping())
    graph.add_edge(START, "house")
    graph.add_edge("house", END)
    return graph.compile()
