"""Builders of graphs whose nodes follow each other."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, StateGraph


def chain(schema: Any, **nodes: Any) -> Any:
    """Return a builder with these nodes, one after the other."""
    return StateGraph(schema).add_sequence([*nodes.items()]).add_edge(START, next(iter(nodes)))
