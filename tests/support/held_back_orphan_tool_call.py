"""Tool calls handed out one by one: some results are saved, and others are not. Mended: the missing are filled in."""

import asyncio
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Send

INVARIANT, INPUTS = "conversation", ["How is the weather, and how is the tide?"]


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


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


def agent(repairs: bool) -> Any:
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools(list(TOOLS.values()))

    async def think(state: State) -> dict[str, Any]:
        messages = list(state["messages"])
        done = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
        if repairs:
            given, messages = messages, []
            for message in given:
                messages.append(message)
                if isinstance(message, AIMessage):
                    missing = [call["id"] for call in message.tool_calls if call["id"] not in done]
                    messages += [ToolMessage("No result.", tool_call_id=each) for each in missing]
        return {"messages": [await model.ainvoke(messages)]}

    async def use(call: dict[str, Any]) -> dict[str, Any]:
        text = await TOOLS[call["name"]].ainvoke(call["args"])
        return {"messages": [ToolMessage(text, tool_call_id=call["id"])]}

    def after(state: State) -> Any:
        return [Send("use", dict(call)) for call in state["messages"][-1].tool_calls] or END

    builder = StateGraph(State)
    builder.add_node("think", think)
    builder.add_node("use", use)
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", after, ["use", END])
    builder.add_edge("use", "think")
    return builder.compile()


def broken() -> Any:
    return agent(repairs=False)


def mended() -> Any:
    return agent(repairs=True)
