"""Small graphs for the lint whose requests go to several services, or that are late in a way of their own."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypedDict

import httpx
from chains import chain
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph


class State(TypedDict, total=False):
    """A question and what came of it."""

    question: str
    answer: Any


def one_node(node: Any, name: str = "only", state: Any = State, **options: Any) -> Any:
    """Return a graph of one node."""
    return StateGraph(state).add_node(name, node, **options).add_edge(START, name).compile()


def chat_model(timeout_s: float, tries: int = 1) -> ChatOpenAI:
    """Return a model of another host."""
    address = "https://models.example.com/v1"
    return ChatOpenAI(model="m", base_url=address, api_key="k", timeout=timeout_s, max_retries=tries - 1)


def ask_tavily(timeout_s: float) -> Any:
    """Ask a search service, which is no model, and return its results."""
    return httpx.post("https://api.tavily.com/search", json={"query": "q"}, timeout=timeout_s).json()["results"]


def _search(state: State) -> State:
    return {"answer": ask_tavily(60)}


def _search_then_ask(state: MessagesState) -> dict[str, Any]:
    ask_tavily(0.5)
    return {"messages": [chat_model(60).invoke(state["messages"])]}


def _write_point(state: State) -> State:
    with httpx.Client(base_url="http://store.example.org:6333/collections/c", timeout=60) as store:
        store.put("", json={"vectors": {"size": 1, "distance": "Dot"}})
        return {"answer": store.put("/points", json={"points": [{"id": 1, "vector": [0.1]}]}).json()}


async def _ask_twice(state: MessagesState) -> dict[str, Any]:
    model = chat_model(60)
    return {"messages": await asyncio.gather(*(model.ainvoke(state["messages"]) for _ in range(2)))}


async def _block(state: State) -> State:
    time.sleep(2)
    return {}


async def _fail(state: State) -> State:
    raise ValueError("no")


async def _tidy(state: State) -> State:
    await asyncio.sleep(6)
    return {}


def _ask_quickly(state: State) -> State:
    if ask_tavily(0.5) is None:
        return {}
    return {"answer": "found"}


def _ask_instead(state: State) -> State:
    return {"answer": ask_tavily(60)}


def _many() -> Any:
    """Return four nodes in a row that wait, ask a search service and a model, and one that blocks the loop."""

    def work(state: MessagesState) -> dict[str, Any]:
        time.sleep(1)
        ask_tavily(60)
        return {"messages": [chat_model(60, tries=3).invoke(state["messages"])]}

    async def blocked(state: MessagesState) -> dict[str, Any]:
        time.sleep(1)
        return {}

    names = {f"node_{number}": work for number in range(4)}
    return chain(MessagesState, **names, last=RunnableLambda(lambda state: {}, blocked)).compile()


many = _many()
"""Five nodes with findings of many kinds."""
line_that_blocks = _block.__code__.co_firstlineno + 1
"""Of `blocking`, in this file."""
searching = one_node(_search)
"""Sync; its one request, to a search service, has a timeout of 60 s."""
searching_then_asking = one_node(_search_then_ask, state=MessagesState)
"""Sync; a request that is given up after 0.5 s, which fails the run, and then one of 60 s to a model."""
writing = one_node(_write_point)
"""Sync; its requests to a vector store are no searches."""
asking_twice = one_node(_ask_twice, state=MessagesState)
"""Async; two requests of 60 s, side by side."""
blocking = one_node(_block)
"""A coroutine that blocks its event loop for 2 s."""
recovering = one_node(_ask_quickly, error_handler=_ask_instead)
"""Sync; a request that is given up after 0.5 s, and an error handler whose request has a timeout of 60 s."""
handling = one_node(_fail, "breaks", error_handler=_tidy)
"""Async; its node fails at once, and its error handler takes 6 s."""
