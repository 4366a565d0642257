"""A subgraph with a memory of its own below a graph with a checkpointer."""

from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages

model = ChatOpenAI(model="gpt-4.1-mini")


class ExpertState(TypedDict):
    notes: Annotated[list, add_messages]
    question: str


def take_notes(state: ExpertState):
    return {"notes": [model.invoke([("system", "Note what is asked."), ("user", state["question"])])]}


def conclude(state: ExpertState):
    return {"notes": [model.invoke([("system", "Conclude from the notes."), *state["notes"]])]}


expert_builder = StateGraph(ExpertState)
expert_builder.add_sequence([take_notes, conclude])
expert_builder.add_edge(START, "take_notes")
expert = expert_builder.compile(checkpointer=True)


def ask_expert(state: MessagesState):
    notes = expert.invoke({"question": state["messages"][-1].content})["notes"]
    return {"messages": [("assistant", f"From {len(notes)} notes: {notes[-1].content}")]}


builder = StateGraph(MessagesState)
builder.add_node("expert", ask_expert)
builder.add_edge(START, "expert")
graph = builder.compile(checkpointer=InMemorySaver())
