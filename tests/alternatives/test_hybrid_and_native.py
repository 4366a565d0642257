"""What E and F do where the others cannot: small graphs that wait without a client, or block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from manual_clock import ManualClock

from docmind_lab.alternatives import ALTERNATIVES, Alternative, Cooperative, Hybrid, Native
from docmind_lab.core.clock import WALL, Clock
from docmind_lab.core.deadlines import Deadline
from docmind_lab.network.recorder import Recorder

INPUTS = {"messages": [HumanMessage("?", id="question")]}
THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    messages: list[AnyMessage]
    documents: list[dict[str, Any]]


def graph(*steps: Callable[[], Any], checkpointer: Any = None) -> Any:
    """Steps in a row; the first finds a document, the last one answers."""
    made = StateGraph(State)
    names = [f"step{number}" for number in range(len(steps))]
    for name, step in zip(names, steps, strict=True):
        made.add_node(name, _node(step, last=name == names[-1]))
    for before, after in zip([START, *names], [*names, END], strict=True):
        made.add_edge(before, after)
    return made.compile(checkpointer=checkpointer).with_config(THREAD)


def _node(step: Callable[[], Any], *, last: bool) -> Any:
    def update(state: State) -> dict[str, Any]:
        found: dict[str, Any] = {"documents": [{"id": "a", "content": "text"}]}
        return found | ({"messages": [*state["messages"], AIMessage("The answer.")]} if last else {})

    def sync(state: State) -> dict[str, Any]:
        step()
        return update(state)

    async def awaited(state: State) -> dict[str, Any]:
        result = step()
        if asyncio.iscoroutine(result):
            await result
        return update(state)

    return RunnableLambda(sync, awaited)


def run(alternative: Alternative, runnable: Any, budget_s: float = 0.2, clock: Clock = WALL) -> tuple[Any, float]:
    """The outcome, and how long after the deadline the caller had it."""
    deadline = Deadline.after(budget_s, clock)
    outcome = alternative.run(runnable, INPUTS, deadline, Recorder("r", 7, deadline, clock))
    return outcome, -deadline.remaining()


@pytest.mark.parametrize("alternative", [Cooperative(), Hybrid()], ids=str)
def test_an_answer_that_was_complete_when_the_deadline_fell_is_delivered(alternative: Alternative) -> None:
    """The deadline falls during the last step, which comes to its end all the same."""
    clock = ManualClock()
    runnable = graph(lambda: None, lambda: clock.sleep(1.0), checkpointer=InMemorySaver())
    outcome, late_s = run(alternative, runnable, budget_s=0.5, clock=clock)
    assert late_s == pytest.approx(0.5)
    assert (outcome.outcome, outcome.answer) == ("answered", "The answer.")


@pytest.mark.parametrize("alternative", [Cooperative(), Hybrid()], ids=str)
def test_a_step_after_the_deadline_is_not_started_and_documents_are_kept(alternative: Alternative) -> None:
    clock = ManualClock()
    started: list[str] = []
    runnable = graph(
        lambda: clock.sleep(1.0), lambda: None, lambda: started.append("last"), checkpointer=InMemorySaver()
    )
    outcome, _ = run(alternative, runnable, budget_s=0.5, clock=clock)
    assert started == []
    assert outcome.outcome == "partial"
    assert [document["id"] for document in outcome.documents] == ["a"]


# An alternative that holds is back within this of its deadline on a busy machine; one that does not, after 30 s.
HELD_S = 1.0


@pytest.mark.wall
@pytest.mark.parametrize(
    ("alternative", "reason"), [(Hybrid(), "step_timeout"), (Native(), "node_timeout")], ids=["E", "F"]
)
def test_a_node_that_waits_without_a_client_is_cancelled_and_what_was_found_is_kept(
    alternative: Alternative, reason: str
) -> None:
    outcome, late_s = run(alternative, graph(lambda: None, lambda: asyncio.sleep(30.0)))
    assert late_s < HELD_S
    assert (outcome.outcome, outcome.stop_reason) == ("partial", reason)
    assert [document["id"] for document in outcome.documents] == ["a"]


@pytest.mark.wall
def test_f_compiles_its_outer_graph_once_and_not_in_every_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runnables = [graph(lambda: None), graph(lambda: None, lambda: None)]
    run(Native(), runnables[0], budget_s=30.0)
    compiled: list[Any] = []
    monkeypatch.setattr(StateGraph, "compile", lambda builder, **options: compiled.append(builder))
    outcomes = [run(Native(), runnable, budget_s=30.0)[0].outcome for runnable in runnables]
    assert (outcomes, compiled) == (["answered", "answered"], [])


@pytest.mark.wall
def test_runs_of_f_side_by_side_have_a_graph_and_a_deadline_each() -> None:
    def one(budget_s: float, wait_s: float) -> Any:
        deadline = Deadline.after(budget_s)
        runnable = graph(lambda: None, lambda: asyncio.sleep(wait_s))
        return Native().run_async(runnable, INPUTS, deadline, Recorder("r", 7, deadline))

    async def side_by_side() -> list[Any]:
        return await asyncio.gather(one(0.2, 30.0), one(30.0, 0.4), one(0.3, 30.0))

    outcomes = asyncio.run(side_by_side())
    assert [outcome.outcome for outcome in outcomes] == ["partial", "answered", "partial"]
    assert [outcome.stop_reason for outcome in outcomes] == ["node_timeout", "", "node_timeout"]


# A timeout of a tool's own, before the deadline, is no timeout of the run.
@pytest.mark.parametrize("error", [ZeroDivisionError, TimeoutError])
@pytest.mark.parametrize("kind", ALTERNATIVES.values(), ids=ALTERNATIVES)
def test_a_node_that_raises_is_a_failed_run_with_the_errors_name(
    kind: type[Alternative], error: type[Exception]
) -> None:
    def fail() -> None:
        raise error

    outcome, _ = run(kind(), graph(lambda: None, fail), budget_s=20.0)
    assert (outcome.outcome, outcome.stop_reason, outcome.error_type) == ("failed", "error", error.__name__)
