"""Map and reduce: a list of subjects by structured output, one branch for each with Send, the best of the results."""

import operator
from typing import Annotated, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-4.1-mini")


class Subjects(BaseModel):
    subjects: list[str] = Field(description="Two to four subjects", min_length=2, max_length=4)


class Joke(BaseModel):
    joke: str


class BestJoke(BaseModel):
    id: int = Field(description="Index of the best joke, from 0", ge=0)


class State(TypedDict):
    topic: str
    subjects: list[str]
    jokes: Annotated[list[str], operator.add]
    best: str


class JokeState(TypedDict):
    subject: str


def choose_subjects(state: State):
    return {"subjects": model.with_structured_output(Subjects).invoke(f"Subjects about {state['topic']}").subjects}


def write_joke(state: JokeState):
    return {"jokes": [model.with_structured_output(Joke).invoke(f"A joke about {state['subject']}").joke]}


def choose_best(state: State):
    jokes = "\n\n".join(state["jokes"])
    found = model.with_structured_output(BestJoke).invoke(f"Which joke about {state['topic']} is best?\n\n{jokes}")
    return {"best": state["jokes"][min(found.id, len(state["jokes"]) - 1)]}


builder = StateGraph(State)
builder.add_node("choose_subjects", choose_subjects)
builder.add_node("write_joke", write_joke)
builder.add_node("choose_best", choose_best)
builder.add_edge(START, "choose_subjects")
builder.add_conditional_edges(
    "choose_subjects", lambda state: [Send("write_joke", {"subject": s}) for s in state["subjects"]], ["write_joke"]
)
builder.add_edge("write_joke", "choose_best")
builder.add_edge("choose_best", END)
graph = builder.compile()
