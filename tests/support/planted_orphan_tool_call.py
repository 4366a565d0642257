"""A tool call that is saved without its result: the next request is refused. Mended: missing results are filled in."""

import time
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

INVARIANT, INPUTS = "conversation", ["How deep is the harbour?"]


@tool
def sounding(query: str) -> str:
    """Return the depth of the harbour."""
    time.sleep(0.3)
    return "The harbour is 9 metres deep at low tide, and 12 metres deep at high tide."


def filled_in(messages: list[Any]) -> list[Any]:
    """Return a conversation in which each tool call has a result directly after it."""
    made = []
    for position, message in enumerate(messages):
        made.append(message)
        if isinstance(message, AIMessage):
            following = messages[position + 1 :]
            answered = {each.tool_call_id for each in following if isinstance(each, ToolMessage)}
            for call in message.tool_calls:
                if call["id"] not in answered:
                    made.append(ToolMessage("It was interrupted.", tool_call_id=call["id"]))
    return made


def agent(repairs: bool) -> Any:
    model = ChatOpenAI(model="gpt-4.1-mini", api_key="none", max_retries=0).bind_tools([sounding])

    def think(state: MessagesState) -> dict[str, Any]:
        messages = state["messages"]
        return {"messages": [model.invoke(filled_in(messages) if repairs else messages)]}

    builder = StateGraph(MessagesState)
    builder.add_node("think", think)
    builder.add_node("tools", ToolNode([sounding]))
    builder.add_edge(START, "think")
    builder.add_conditional_edges("think", tools_condition)
    builder.add_edge("tools", "think")
    return builder.compile()


def broken() -> Any:
    return agent(repairs=False)


def mended() -> Any:
    return agent(repairs=True)
