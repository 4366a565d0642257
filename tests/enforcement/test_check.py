"""`EnforcedAgent.check`: what no deadline reaches in a graph, found before it runs (enforce.md 2)."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from held_graphs import Notes, async_graph, sync_graph, two_nodes
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from redis import Redis

import docmind_lab as dl


def found(graph: Any, alternative: str = "E") -> set[tuple[str, str]]:
    return {(each.node, each.what) for each in dl.enforce(graph, 20, alternative).check()}


def test_nothing_is_found_in_a_graph_of_async_nodes_over_held_clients() -> None:
    assert found(async_graph("http://127.0.0.1:1")) == set()
    agent = create_agent(ChatOpenAI(model="m", api_key="not used"), tools=[])
    assert found(agent) == set()


def test_clients_that_are_not_held_are_named_with_the_node_that_reaches_them() -> None:
    store = Redis()

    async def plan(state: Notes) -> Notes:
        return {"log": [str(store.get("plan"))]}

    async def ask(state: Notes) -> Notes:
        return {"log": [str(subprocess.run(["true"], check=False))]}

    assert found(two_nodes(plan, ask)) == {("plan", "redis"), ("ask", "subprocess")}
    (first, _) = dl.enforce(two_nodes(plan, ask)).check()
    assert str(first) == "plan: redis: a database driver has connections of its own; set socket_timeout"


@pytest.mark.parametrize(
    ("alternative", "expected"),
    [
        ("A", set()),
        ("C", {("plan", "blocking code"), ("ask", "blocking code")}),
        ("E", {("plan", "blocking code"), ("ask", "blocking code")}),
        ("D", {("plan", "every request"), ("ask", "every request")}),
    ],
)
def test_blocking_nodes_are_named_where_an_alternative_runs_them_in_threads(alternative: str, expected: Any) -> None:
    assert found(sync_graph("http://127.0.0.1:1"), alternative) == expected
