"""`EnforcedAgent.check`: what no deadline reaches in a graph, found before it runs (enforce.md 2)."""

from __future__ import annotations

import asyncio
import http.client
import subprocess
import textwrap
import threading
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
import requests
from held_graphs import Notes, async_graph, sync_graph, two_nodes
from hung_graphs import one_node
from langchain.agents import create_agent
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_core.tools import StructuredTool
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


SESSION, CLIENT = requests.Session(), httpx.Client()


def ask_in_import(state: Notes) -> Notes:
    import subprocess as programs

    return {"log": [str(programs.run(["true"], check=False))]}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (lambda _: (SESSION.request("GET", urllib.parse.quote("q")), CLIENT.get("q")), set()),
        (lambda _: (http.client.HTTPConnection("h"), urllib.request.urlopen("u")), {"http.client", "urllib.request"}),
        (lambda _: ContextThreadPoolExecutor(1), set()),
        (lambda _: (ThreadPoolExecutor(), threading.Thread()), {"concurrent.futures.thread", "threading.Thread"}),
        (ask_in_import, {"subprocess"}),
    ],
)
def test_what_a_node_asks_by_is_told_from_what_it_only_has_beside_it(node: Any, expected: set[str]) -> None:
    assert found(one_node(node), "A") == {("only", what) for what in expected}


async def hand_over(state: Notes) -> Notes:
    return {"log": [await asyncio.to_thread(str, "q")]}


def agent_with(**form: Any) -> Any:
    tool = StructuredTool.from_function(name="look_up", description="Looks up.", **form)
    return create_agent(ChatOpenAI(model="m", api_key="not used"), [tool])


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (lambda: agent_with(func=textwrap.dedent), {"tools"}),
        (lambda: agent_with(coroutine=asyncio.sleep), set()),
        (lambda: one_node(sync_graph("http://127.0.0.1:1")), {"only"}),
        (lambda: one_node(hand_over), {"only"}),
    ],
    ids=["sync tool", "async tool", "sync subgraph", "to_thread"],
)
def test_blocking_code_inside_a_node_is_named_as_that_of_the_node(graph: Any, expected: set[str]) -> None:
    assert found(graph(), "C") == {(node, "blocking code") for node in expected}
