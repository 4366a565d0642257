"""A graph of async nodes only, which fan out and join."""

import asyncio
import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

model = ChatOpenAI(model="gpt-4.1-mini")


class State(TypedDict):
    question: str
    views: Annotated[list[str], operator.add]
    answer: str


def view_of(who: str):
    async def view(state: State):
        reply = await model.ainvoke([("system", f"You are a {who}."), ("user", state["question"])])
        return {"views": [f"{who}: {reply.content}"]}

    return view


async def judge(state: State):
    drafts = await asyncio.gather(*(model.ainvoke(f"Judge this view: {view}") for view in state["views"]))
    return {"answer": " ".join(draft.content for draft in drafts)}


builder = StateGraph(State)
for who in ("pilot", "captain", "owner"):
    builder.add_node(who, view_of(who))
    builder.add_edge(START, who)
builder.add_node("judge", judge)
builder.add_edge(["pilot", "captain", "owner"], "judge")
builder.add_edge("judge", END)
graph = builder.compile()
