"""A draft that a person approves or corrects: the graph waits at an interrupt, and goes on with what it is told."""

from typing import Literal, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

model = ChatOpenAI(model="gpt-4.1-mini")


class State(TypedDict):
    request: str
    draft: str
    sent: bool


def write(state: State):
    return {"draft": model.invoke(f"Write a short notice: {state['request']}").content}


def review(state: State) -> Command[Literal["send", "__end__"]]:
    answer = interrupt({"question": "Send this notice?", "draft": state["draft"]})
    if answer["approved"]:
        return Command(goto="send", update={"draft": answer.get("draft", state["draft"])})
    return Command(goto=END)


def send(state: State):
    checked = model.invoke(f"Check the spelling of this notice: {state['draft']}")
    return {"draft": checked.content or state["draft"], "sent": True}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("review", review)
builder.add_node("send", send)
builder.add_edge(START, "write")
builder.add_edge("write", "review")
builder.add_edge("send", END)
graph = builder.compile()
