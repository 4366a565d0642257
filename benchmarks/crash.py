"""How long it takes to cut an agent of four nodes at a hundred points under three alternatives, on worker processes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import docmind_lab as dl
from benchmarks.figures import Figure, sampled
from docmind_lab.experiments.crash_test import crash_test

TARGET_S = 60.0
POINTS, ALTERNATIVES = 100, "A,D,E"


def four_nodes() -> Any:
    """Return an agent that plans, looks something up with a tool, writes and checks, a model in three of its nodes."""
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @tool
    def look_up(query: str) -> str:
        """Look something up."""
        return f"{query}: a deadline is an instant, and a budget is a number of seconds."

    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0)
    streaming = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0, streaming=True)
    with_tool = model.bind_tools([look_up])

    def plan(state: MessagesState) -> dict[str, Any]:
        return {"messages": [with_tool.invoke(state["messages"])]}

    def write(state: MessagesState) -> dict[str, Any]:
        return {"messages": [streaming.invoke(state["messages"])]}

    def check(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("plan", plan)
    builder.add_node("look_up", ToolNode([look_up]))
    builder.add_node("write", write)
    builder.add_node("check", check)
    names = [START, "plan", "look_up", "write", "check", END]
    for before, after in itertools.pairwise(names):
        builder.add_edge(before, after)
    return builder.compile()


def run() -> Iterator[Figure]:
    """The seconds of one crash test with warm workers."""
    # Worker processes start and import the stack first, once.
    _seconds(runs=12)
    yield sampled("300 cuts of an agent of four nodes", [_seconds(runs=3 * POINTS)], at_most=TARGET_S)


def _seconds(runs: int) -> float:
    begun_s = time.monotonic()
    crash_test(
        dl.graph("benchmarks.crash:four_nodes", ["What is a deadline?"]),
        alternatives=ALTERNATIVES,
        runs=runs,
        durability="sync",
    )
    return time.monotonic() - begun_s
