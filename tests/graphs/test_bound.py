"""A graph that is bound to a run carries its context and the limit of its next step."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime

from docmind_lab.alternatives.bound import bound


class State(TypedDict):
    seen: Any


def graph(steps: int = 1, wait_s: float = 0.0) -> Any:
    async def look(state: State) -> State:
        await asyncio.sleep(wait_s)
        return look_sync(state)

    def look_sync(state: State) -> State:
        return {"seen": get_runtime().context}

    made = StateGraph(State)
    names = [f"look{number}" for number in range(steps)]
    for name in names:
        made.add_node(name, look if wait_s else RunnableLambda(look_sync, look))
    for before, after in zip([START, *names], [*names, END], strict=True):
        made.add_edge(before, after)
    return made.compile()


def test_the_context_reaches_every_door() -> None:
    runnable = bound(graph(), context={"router_engine": "engine"})
    expected = {"seen": {"router_engine": "engine"}}
    assert runnable.invoke({"seen": None}) == expected
    assert list(runnable.stream({"seen": None}, stream_mode="values"))[-1] == expected
    assert asyncio.run(runnable.ainvoke({"seen": None})) == expected


def test_a_context_that_the_caller_gives_comes_first() -> None:
    assert bound(graph(), context="held").invoke({"seen": None}, context="given") == {"seen": "given"}


def test_a_copy_and_a_configured_copy_stay_bound() -> None:
    runnable = bound(graph(), context="held").with_config({"tags": ["x"]})
    assert runnable.invoke({"seen": None}) == {"seen": "held"}
    assert type(bound(runnable, context="again")) is type(runnable)


def test_binding_again_adds_to_what_was_bound() -> None:
    runnable = bound(bound(graph(), context="held"))
    assert runnable.invoke({"seen": None}) == {"seen": "held"}


def test_the_graph_itself_stays_as_it_was() -> None:
    made = graph()
    bound(made, context="held")
    assert made.invoke({"seen": "nothing"}) == {"seen": None}


def test_a_bound_graph_keeps_what_others_have_set_on_it() -> None:
    traced = graph()
    traced.traced_by = "somebody"
    assert bound(bound(traced, context=1), context=2).traced_by == "somebody"  # type: ignore[attr-defined]
