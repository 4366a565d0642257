"""A tool whose refund is made again when the run is resumed. Mended: the order is the key of the refund."""

import asyncio
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition

INVARIANT, INPUTS = "effects", ["Give me back what I paid for order 17."]


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


def agent(has_key: bool) -> Any:
    @tool
    async def refund(order_id: str) -> str:
        """Pay back what was paid for an order."""
        await asyncio.sleep(0.3)
        return "What was paid for the order is on its way back to the customer."

    refund.metadata = {"effect": "refund", **({"idempotency_key": "order_id"} if has_key else {})}
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([refund])

    async def think(state: State) -> dict[str, Any]:
        messages: list[Any] = []
        done = {each.tool_call_id for each in state["messages"] if isinstance(each, ToolMessage)}
        for message in state["messages"]:
            messages.append(message)
            if isinstance(message, AIMessage):
                missing = [call["id"] for call in message.tool_calls if call["id"] not in done]
                messages += [ToolMessage("It is not known whether it was done.", tool_call_id=each) for each in missing]
        return {"messages": [await model.ainvoke(messages)]}

    inner = StateGraph(State)
    inner.add_node("think", think)
    inner.add_node("tools", ToolNode([refund]))
    inner.add_edge(START, "think")
    inner.add_conditional_edges("think", tools_condition)
    inner.add_edge("tools", "think")
    outer = StateGraph(State)
    outer.add_node("agent", inner.compile())
    outer.add_edge(START, "agent")
    return outer.compile()


def broken() -> Any:
    return agent(has_key=False)


def mended() -> Any:
    return agent(has_key=True)
