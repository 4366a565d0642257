"""An essay that is criticised and written again, until the critic approves or three drafts are written."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

model = ChatOpenAI(model="gpt-4.1-mini")


class Review(BaseModel):
    approved: bool
    critique: str


class State(TypedDict):
    topic: str
    draft: str
    critique: str
    drafts: int
    approved: bool


def write(state: State):
    prompt = f"Write about {state['topic']}. Mind this critique: {state.get('critique', 'none yet')}"
    return {"draft": model.invoke(prompt).content, "drafts": state.get("drafts", 0) + 1}


def criticise(state: State):
    review = model.with_structured_output(Review).invoke(f"Review this essay: {state['draft']}")
    return {"approved": review.approved, "critique": review.critique}


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("criticise", criticise)
builder.add_edge(START, "write")
builder.add_edge("write", "criticise")
builder.add_conditional_edges(
    "criticise", lambda state: END if state["approved"] or state["drafts"] >= 3 else "write", ["write", END]
)
graph = builder.compile()
