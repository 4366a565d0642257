"""A graph that keeps its deadline under A, C and E, and the ways in which somebody may break it."""

from __future__ import annotations

import time
from typing import Any, TypedDict

import openai
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph

KEY = "sk-of-the-user"


class State(TypedDict, total=False):
    """What the nodes share."""

    question: str
    stop_by: float
    draft: str
    answer: str


class WithoutKey(TypedDict, total=False):
    """The same, with a key that was forgotten."""

    question: str
    draft: str


def made(
    *, retries: int = 0, blocks: bool = False, drops_key: bool = False, read_timeout_s: float | None = None
) -> Any:
    """The compiled graph, mutated. Clients are made here, so that no two graphs share one."""
    client = openai.OpenAI(api_key=KEY, max_retries=retries, timeout=read_timeout_s)
    async_client = openai.AsyncOpenAI(api_key=KEY, max_retries=retries, timeout=read_timeout_s)

    def asked(state: Any) -> dict[str, Any]:
        return {"model": "gpt-4o", "messages": [{"role": "user", "content": state["question"]}]}

    def draft(state: Any) -> dict[str, Any]:
        return {"draft": client.chat.completions.create(**asked(state)).choices[0].message.content}

    async def draft_async(state: Any) -> dict[str, Any]:
        return {"draft": (await async_client.chat.completions.create(**asked(state))).choices[0].message.content}

    def answer(state: Any) -> dict[str, Any]:
        return {"answer": client.chat.completions.create(**asked(state)).choices[0].message.content}

    async def answer_async(state: Any) -> dict[str, Any]:
        if blocks:
            time.sleep(2.0)
        return {"answer": (await async_client.chat.completions.create(**asked(state))).choices[0].message.content}

    builder = StateGraph(State)
    builder.add_node("draft", RunnableLambda(draft, afunc=draft_async))
    schema: Any = WithoutKey if drops_key else State
    builder.add_node("answer", RunnableLambda(answer, afunc=answer_async), input_schema=schema)
    return builder.add_edge(START, "draft").add_edge("draft", "answer").compile()


def plain() -> Any:
    """Without a mutation."""
    return made()


def blocking() -> Any:
    """With a call that blocks the event loop."""
    return made(blocks=True)
