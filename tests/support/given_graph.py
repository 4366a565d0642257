"""A graph that needs its context, its configuration and an answer to its interrupt."""

import time
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt


@dataclass
class Context:
    captain: str


class State(TypedDict, total=False):
    ship: str
    note: str


def greet(state: State, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
    time.sleep(0.2)
    berth = config["configurable"]["berth"]
    return {"note": f"{runtime.context.captain}: {state['ship']} to {berth}, {interrupt('May she leave?')}"}


def make_asking() -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("greet", greet)
    builder.add_edge(START, "greet")
    return builder.compile()
