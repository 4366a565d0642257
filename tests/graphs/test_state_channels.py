"""The merging channels of the state, beside LangGraph's own."""

from __future__ import annotations

import pytest
from langgraph.channels import BinaryOperatorAggregate
from langgraph.graph import StateGraph

from docmind_lab.systems.base.state import Merged
from docmind_lab.systems.docmind.graphs.supervisor_state import MultiAgentGraphState


def test_a_copy_is_what_langgraph_would_make():
    ours, theirs = Merged(list, list.__add__), BinaryOperatorAggregate(list, list.__add__)
    for channel in (ours, theirs):
        channel.update([[1]])
    ours, theirs = ours.copy(), theirs.copy()
    # A field that a newer LangGraph adds to its channel, and that our copy would lack, shows here.
    fields = {name for kind in BinaryOperatorAggregate.__mro__ for name in getattr(kind, "__slots__", ())}
    assert {name: hasattr(ours, name) for name in fields} == {name: hasattr(theirs, name) for name in fields}
    assert ours.get() == theirs.get() == [1]


@pytest.mark.parametrize("key", ["documents", "route", "plan", "validation", "visits", "stop_reason"])
def test_two_graphs_share_no_value(key: str):
    one, other = StateGraph(MultiAgentGraphState).channels[key], StateGraph(MultiAgentGraphState).channels[key]
    assert isinstance(one, Merged)
    made = one.from_checkpoint(one.copy().get())
    made.update(["x"] if key == "stop_reason" else [{"x": 1}] if isinstance(made.get(), dict) else [[{"id": "x"}]])
    assert made.get()
    assert not one.get()
    assert not other.get()
