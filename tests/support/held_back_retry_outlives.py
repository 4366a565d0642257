"""A retry that is shielded from cancellation, and goes on without its caller. Mended: it is cancelled with the node."""

import asyncio
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "begins", [{"host": "down"}]


class State(TypedDict, total=False):
    host: str
    answer: str


async def ping(host: str) -> str:
    async with httpx.AsyncClient() as client:
        for pause_s in (0.2, 0.4, 0.8):
            answer = await client.get(f"https://{host}.example.com/ping")
            if answer.status_code < 500:
                break
            await asyncio.sleep(pause_s)
    return "It does not answer."


def agent(is_shielded: bool) -> Any:
    async def wake(state: State) -> dict[str, Any]:
        ringing = ping(state["host"])
        return {"answer": await (asyncio.shield(ringing) if is_shielded else ringing)}

    inner = StateGraph(State)
    inner.add_node("wake", wake)
    inner.add_edge(START, "wake")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile()


def broken() -> Any:
    return agent(is_shielded=True)


def mended() -> Any:
    return agent(is_shielded=False)
