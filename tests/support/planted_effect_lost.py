"""A payment noted as made before it is, and so left out by the resumed run. Mended: it is noted afterwards."""

from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime

INVARIANT, INPUTS = "effects", [{"order": "17"}]
PAID = ("orders", "paid")


class State(TypedDict, total=False):
    order: str
    answer: str


def agent(is_safe: bool) -> Any:
    def pay(state: State, runtime: Runtime[None]) -> dict[str, Any]:
        store, order = runtime.store, state["order"]
        assert store is not None
        if store.get(PAID, order) is None:
            if not is_safe:
                store.put(PAID, order, {"is_paid": True})
            key = {"Idempotency-Key": f"order-{order}"}
            httpx.post("https://pay.example.com/charges", json={"order": order}, headers=key)
            if is_safe:
                store.put(PAID, order, {"is_paid": True})
        return {"answer": f"Order {order} is paid."}

    return StateGraph(State).add_node("pay", pay).add_edge(START, "pay").compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
