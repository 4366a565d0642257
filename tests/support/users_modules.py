"""Modules as users write them, for tests that load a graph from a file."""

from __future__ import annotations

_MODULE = """from typing import TypedDict

import httpx
import requests
from langgraph.graph import START, StateGraph

{head}


class State(TypedDict, total=False):
    question: str
    found: object


def look(state: State) -> State:
    return {{"found": {found}}}


graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
{tail}
"""


def users_module(head: str = "", found: str = "None", tail: str = "") -> str:
    """Return the text of a module that defines `graph`, whose only node is `look`.

    Args:
        head: What the module does before it makes the graph.
        found: What the node finds, as an expression.
        tail: What the module does after it has made the graph.
    """
    return _MODULE.format(head=head.strip(), found=found, tail=tail)
