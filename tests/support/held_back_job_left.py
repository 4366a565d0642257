"""A job of a pool that waits for a word that never comes once its node is cut. Mended: the word always comes."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypedDict

import httpx
from langgraph.graph import START, StateGraph

INVARIANT, INPUTS = "leftovers", [{"about": "harbour"}]


class State(TypedDict, total=False):
    about: str
    report: str


def agent(is_safe: bool) -> Any:
    def read(state: State) -> dict[str, Any]:
        pool, done = ThreadPoolExecutor(1), threading.Event()

        def show() -> None:
            while not done.wait(0.5):
                pass

        pool.submit(show)
        try:
            report = httpx.get("https://slow.example.com/report").json()["report"]
        except BaseException:
            if is_safe:
                done.set()
                pool.shutdown()
            raise
        done.set()
        pool.shutdown()
        return {"report": report}

    inner = StateGraph(State)
    inner.add_node("read", read)
    inner.add_edge(START, "read")
    outer = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile()


def broken() -> Any:
    return agent(is_safe=False)


def mended() -> Any:
    return agent(is_safe=True)
