"""Small graphs of one's own that a comparison must describe truly: some fail, interrupt, or are async only."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any, TypedDict

from chains import chain
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt


class State(TypedDict, total=False):
    """What the graphs pass on."""

    question: str
    answer: str


def _of(node: Any) -> Any:
    return chain(State, work=node).compile(checkpointer=InMemorySaver())


def _fail(state: State) -> State:
    raise KeyError("the customer's name")


async def _wait(state: State) -> State:
    await asyncio.sleep(3.0)
    return {"answer": "done"}


def _ask(state: State) -> State:
    return {"answer": interrupt("Is that so?")}


async def _fail_sometimes(state: State) -> State:
    """Takes from half of the deadline to twice as long, and fails in a third of the runs; the lab seeds `random`."""
    await asyncio.sleep(random.uniform(1.0, 4.0))
    if random.random() < 1 / 3:
        raise ValueError("no such order")
    return {"answer": "done"}


def _ask_thrice(state: State) -> State:
    return {"answer": " ".join(interrupt(f"Question {number}?") for number in (1, 2, 3))}


failing = _of(_fail)
failing_sometimes = _of(_fail_sometimes)
interrupting_thrice = _of(_ask_thrice)
async_only = _of(_wait)
interrupting = _of(_ask)

NAP_S = 0.6
"""How long a node sleeps that asks nobody anything, from the beginning of the run."""


def _nap(state: State) -> State:
    time.sleep(NAP_S)
    return {"answer": "rested"}


napping = chain(State, nap=_nap).compile()
inside = chain(State, house=napping).compile()
"""The same node inside another."""
