"""A graph of plain functions: sync, async, and async in name only; a loop that tries again; branches side by side.

It uses the openai library and httpx by themselves, and its state has no messages.
"""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, Any, TypedDict

import httpx
import openai
from langgraph.graph import START, StateGraph
from langgraph.types import Send

KEY = "sk-of-the-user"
client = openai.OpenAI(api_key=KEY)
async_client = openai.AsyncOpenAI(api_key=KEY)
plain = httpx.Client(timeout=60.0)

SEEN: list[float] = []
"""What the last node has seen of the time, for whoever wants to know."""


class State(TypedDict, total=False):
    """What the nodes share."""

    question: str
    stop_by: float
    parts: list[str]
    findings: Annotated[list[str], operator.add]
    part: str
    report: str
    deadline_seen: float


def _asked(text: str) -> list[Any]:
    return [{"role": "system", "content": "You are terse."}, {"role": "user", "content": text}]


def _planned(state: State, reply: Any) -> State:
    text = reply.choices[0].message.content if reply is not None else ""
    return {"parts": [f"{text} one", f"{text} two", f"{text} three"], "deadline_seen": state.get("stop_by", 0.0)}


def plan(state: State) -> State:
    """Sync: a loop that tries again after whatever goes wrong."""
    reply = None
    for pause_s in (0.5, 1.0, 2.0, 4.0):
        try:
            reply = client.chat.completions.create(model="gpt-4o", messages=_asked(state["question"]))
            break
        except Exception:  # noqa: BLE001 - as people write it
            time.sleep(pause_s)
    return _planned(state, reply)


async def plan_async(state: State) -> State:
    """The same, async."""
    reply = None
    for pause_s in (0.5, 1.0, 2.0, 4.0):
        try:
            reply = await async_client.chat.completions.create(model="gpt-4o", messages=_asked(state["question"]))
            break
        except Exception:  # noqa: BLE001 - as people write it
            await asyncio.sleep(pause_s)
    return _planned(state, reply)


def branches(state: State) -> list[Send]:
    """One branch for each part."""
    return [Send("work", {"part": part}) for part in state["parts"]]


def work(state: State) -> State:
    """A branch, by httpx alone."""
    response = plain.post(
        "https://llm.example.org/v1/chat/completions",
        json={"model": "house-model", "messages": _asked(state["part"])},
        headers={"Authorization": f"Bearer {KEY}"},
    )
    return {"findings": [response.json()["choices"][0]["message"]["content"]]}


def check(state: State) -> State:
    """Blocks for a while, and asks."""
    time.sleep(0.3)
    client.chat.completions.create(model="gpt-4o", messages=_asked(" ".join(state["findings"])))
    return {}


async def check_async(state: State) -> State:
    """Async in name only: the loop stands still meanwhile."""
    return check(state)


def report(state: State) -> State:
    """The end."""
    SEEN.append(state.get("deadline_seen", 0.0))
    return {"report": "; ".join(state["findings"])}


def make() -> Any:
    """The compiled graph."""
    from langchain_core.runnables import RunnableLambda

    builder = StateGraph(State)
    builder.add_node("plan", RunnableLambda(plan, afunc=plan_async))
    builder.add_node("work", work)
    builder.add_node("check", RunnableLambda(check, afunc=check_async))
    builder.add_node("report", report)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", branches, ["work"])
    return builder.add_edge("work", "check").add_edge("check", "report").compile()
