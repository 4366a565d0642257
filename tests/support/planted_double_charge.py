"""A payment that is made again when the run is resumed. Mended: both carry the order as the key of the payment."""

import time
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "effects", [{"order": "17"}]


class State(TypedDict, total=False):
    order: str
    receipt: str
    letter: str


def agent(has_key: bool) -> Any:
    def pay(state: State) -> dict[str, Any]:
        headers = {"Idempotency-Key": f"order-{state['order']}"} if has_key else {}
        answer = httpx.post("https://pay.example.com/charges", json={"order": state["order"]}, headers=headers)
        return {"receipt": answer.json()["status"]}

    def write(state: State) -> dict[str, Any]:
        time.sleep(0.3)
        return {"letter": f"Order {state['order']} is {state['receipt']}."}

    builder = StateGraph(State)
    builder.add_node("pay", pay)
    builder.add_node("write", write)
    builder.add_edge(START, "pay")
    builder.add_edge("pay", "write")
    return builder.compile()


def broken() -> Any:
    return agent(has_key=False)


def mended() -> Any:
    return agent(has_key=True)
