"""Extraction in three steps, each by another way to ask for structured output."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, Field

model = ChatOpenAI(model="gpt-4.1-mini", temperature=0)


class Ship(BaseModel):
    name: str
    kind: str = Field(description="Such as tug, ferry or freighter")
    length_m: float = Field(gt=0, lt=500)


class Ships(BaseModel):
    ships: list[Ship] = Field(min_length=1, max_length=3)


class Urgency(BaseModel):
    level: int = Field(ge=1, le=5)


class State(TypedDict):
    report: str
    ships: list[Ship]
    urgency: int
    title: str


def find_ships(state: State):
    return {"ships": model.with_structured_output(Ships, method="json_schema").invoke(state["report"]).ships}


def judge(state: State):
    found = model.with_structured_output(Urgency, method="function_calling").invoke(state["report"])
    return {"urgency": found.level}


def name_it(state: State):
    prompt = f'Answer with JSON alone, as {{"title": "…"}}. Give this report a title: {state["report"]}'
    return {
        "title": model.with_structured_output(
            {"title": "Title", "type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
            method="json_mode",
        ).invoke(prompt)["title"]
    }


builder = StateGraph(State)
builder.add_sequence([find_ships, judge, name_it])
builder.add_edge(START, "find_ships")
builder.add_edge("name_it", END)
graph = builder.compile()
