"""Somebody's application at a server of their own, for notebook 12: three steps, each a call to the model.

The server is the one that OPENAI_BASE_URL names, its model the one that MODEL names.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph

STEPS = ("plan", "draft", "revise")


def graph() -> Any:
    """The three steps one after the other; the input says how many tokens each writes, such as "120 31 400"."""
    model = ChatOpenAI(
        base_url=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ.get("OPENAI_API_KEY", "unused"),
        model=os.environ.get("MODEL", "tiny"),
        temperature=1.0,
    )

    def step(place: int) -> Any:
        def call(state: MessagesState) -> dict[str, Any]:
            tokens = int(str(state["messages"][0].content).split()[place])
            return {"messages": [model.bind(max_tokens=tokens).invoke([("user", "Go on.")])]}

        return call

    builder = StateGraph(MessagesState)
    for place, name in enumerate(STEPS):
        builder.add_node(name, step(place))
    builder.set_entry_point(STEPS[0])
    for one, other in itertools.pairwise(STEPS):
        builder.add_edge(one, other)
    return builder.compile()
