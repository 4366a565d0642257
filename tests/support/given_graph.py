"""A graph that needs its context, its configuration and an answer to its interrupt. It writes where it is told to."""

import os
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


def wait(state: State) -> dict[str, Any]:
    with open(os.environ["TEST_STEPS_FILE"], "a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    for _ in range(40):
        time.sleep(0.1)
    return {"note": "waited"}


def make_asking() -> Any:
    return StateGraph(State, context_schema=Context).add_node(greet).add_edge(START, "greet").compile()


def make_waiting() -> Any:
    return StateGraph(State).add_node(wait).add_edge(START, "wait").compile()
