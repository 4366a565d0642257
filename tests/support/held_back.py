"""Four async defects with their corrected twins, written before the crash test was tried on them."""

import asyncio
from typing import Any

import httpx
from chains import chain
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, MessagesState
from langgraph.store.base import BaseStore
from langgraph.types import Send
from planted import Greeting, Ping, filled_in, with_tools
from twins import twins


@twins("effects", "Give me back what I paid for order 17.")
def double_refund(is_safe: bool) -> Any:
    """A tool whose refund is made again when the run is resumed. Mended: the order is the key of the refund."""

    @tool
    async def refund(order_id: str) -> str:
        """Pay back what was paid for an order."""
        await asyncio.sleep(0.3)
        return "What was paid for the order is on its way back to the customer."

    refund.metadata = {"effect": "refund", **({"idempotency_key": "order_id"} if is_safe else {})}
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([refund])

    async def think(state: MessagesState) -> dict[str, Any]:
        messages = filled_in(state["messages"])
        return {"messages": [await model.ainvoke(messages)]}

    return chain(MessagesState, agent=with_tools(think, refund)).compile()


@tool
async def weather(place: str) -> str:
    """Return the weather."""
    await asyncio.sleep(0.2)
    return "The wind comes from the west at 14 knots, and the sky is clear."


@tool
async def tide(place: str) -> str:
    """Return the tide."""
    await asyncio.sleep(0.6)
    return "The tide is 3 metres high at noon, and it falls until six."


TOOLS = {"weather": weather, "tide": tide}


@twins("conversation", "How is the weather, and how is the tide?")
def orphan_tool_call(is_safe: bool) -> Any:
    """Tool calls handed out one by one: only some results are saved. Mended: the missing are filled in."""
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools(list(TOOLS.values()))

    async def think(state: MessagesState) -> dict[str, Any]:
        messages = filled_in(state["messages"]) if is_safe else state["messages"]
        return {"messages": [await model.ainvoke(messages)]}

    async def use(call: dict[str, Any]) -> dict[str, Any]:
        text = await TOOLS[call["name"]].ainvoke(call["args"])
        return {"messages": [ToolMessage(text, tool_call_id=call["id"])]}

    def after(state: MessagesState) -> Any:
        return [Send("use", dict(call)) for call in state["messages"][-1].tool_calls] or END

    builder = chain(MessagesState, think=think)
    builder.add_node("use", use)
    builder.add_conditional_edges("think", after, ["use", END])
    builder.add_edge("use", "think")
    return builder.compile()


async def ping(host: str) -> str:
    async with httpx.AsyncClient() as client:
        for pause_s in (0.2, 0.4, 0.8):
            answer = await client.get(f"https://{host}.example.com/ping")
            if answer.status_code < 500:
                break
            await asyncio.sleep(pause_s)
    return "It does not answer."


@twins("begins", {"host": "down"})
def retry_outlives(is_safe: bool) -> Any:
    """A retry shielded from cancellation, which goes on without its caller. Mended: it is cancelled with the node."""

    async def wake(state: Ping) -> dict[str, Any]:
        ringing = ping(state["host"])
        return {"answer": await (ringing if is_safe else asyncio.shield(ringing))}

    return chain(Ping, inner=chain(Ping, wake=wake).compile()).compile()


@twins("checkpoint", {"name": "Grace"})
def write_after_fence(is_safe: bool) -> Any:
    """A task of an event loop that writes to the store after the caller was told. Mended: the node awaits it."""
    running = set()

    async def write(store: BaseStore, name: str) -> None:
        await asyncio.sleep(0.7)
        await store.aput(("people",), name, {"seen": True})

    async def remember(state: Greeting, *, store: BaseStore) -> dict[str, Any]:
        if is_safe:
            await write(store, state["name"])
        else:
            task = asyncio.create_task(write(store, state["name"]))
            running.add(task)
            task.add_done_callback(running.discard)
        return {}

    async def greet(state: Greeting) -> dict[str, Any]:
        await asyncio.sleep(1.2)
        return {"greeting": f"Good evening, {state['name']}"}

    return chain(Greeting, remember=remember, greet=greet).compile()
