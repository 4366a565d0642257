"""What becomes of an agent whose part of the budget is over while the run's own deadline is not."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from graph_fakes import (
    COMPLEX,
    SIMPLE,
    FakeModel,
    agent,
    asked,
    asking,
    called,
    check_whole,
    docmind,
    in_turn,
    recorder,
    resources,
    scripted_model,
    team,
    texts,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline, PropagationPolicy, policy_scope
from docmind_lab.network.recorder import Recorder, recording
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.docmind.graphs import SupervisorBuildParams

both_doors = pytest.mark.parametrize("how", ["invoke", "ainvoke"])
ANSWERING = SupervisorBuildParams(answering_agent="synthesis_agent")


@dataclass(frozen=True)
class Nothing:
    """No time at all for these roles, and the whole budget for the others."""

    roles: tuple[str, ...]

    name: ClassVar[str] = "nothing"

    def until_s(self, role: str, budget_s: float) -> float:
        return 0.0 if role in self.roles else budget_s


def run(
    app: Any,
    how: str,
    inputs: dict[str, Any],
    *cut: str,
    allocation: Any = None,
    whole: Deadline | None = None,
    noted: Recorder | None = None,
    configurable: bool = False,
) -> dict[str, Any]:
    """The final state of a run of a minute in which some roles have no time."""
    whole = whole or Deadline.after(60.0)
    inputs = {**inputs, DEADLINE_KEY: whole.at_s}
    config: Any = {"configurable": {DEADLINE_KEY: whole.at_s}} if configurable else {}
    policy = PropagationPolicy(allocation=allocation or Nothing(cut))
    with policy_scope(policy, whole), recording(noted or recorder()):
        state: dict[str, Any] = (
            app.invoke(inputs, config) if how == "invoke" else asyncio.run(app.ainvoke(inputs, config))
        )
    return state


def system(model: FakeModel | None = None) -> Any:
    return docmind(model or scripted_model(), resources(), params=ANSWERING)


def spent(noted: Recorder) -> list[tuple[str, float]]:
    events = noted.snapshot().events
    return [(event.role, event.detail["allotted_s"]) for event in events if event.event == "allotment_spent"]


@both_doors
@pytest.mark.parametrize("role", ["router", "planner", "validation"])
def test_a_role_without_time_is_left_out_and_the_run_answers(how: str, role: str) -> None:
    noted = recorder()
    state = run(system(), how, asked(COMPLEX), role, noted=noted)
    check_whole(state["messages"])
    assert state["stop_reason"] == ""
    assert state["messages"][-1].name == "supervisor"
    assert "[" in state["messages"][-1].text
    # Without the router nobody calls the question complex, and the planner is not asked at all.
    assert spent(noted) == [(role, 0.0)]
    assert f"{role}_agent" in state["visits"]


@both_doors
def test_what_the_supervisor_is_told_is_nothing_that_the_agent_says(how: str) -> None:
    state = run(system(), how, asked(COMPLEX), "planner")
    assert not [message for message in state["messages"] if message.name == "planner_agent" and message.text]
    notes = [json.loads(m.text) for m in state["messages"] if isinstance(m, ToolMessage) and "had no time" in m.text]
    assert notes == [
        {"agent": "planner_agent", "note": "planner_agent had no time left for this; go on with what there is."}
    ]
    assert "transfer_back_to_supervisor" in called(state)


@both_doors
def test_a_search_without_time_is_an_allotment_spent_and_the_run_goes_on(how: str) -> None:
    state = run(system(), how, asked(SIMPLE), "retrieval")
    assert not state.get("documents")
    assert state["stop_reason"] == ""


@both_doors
def test_without_its_answering_agent_a_run_ends_early_with_the_documents_it_has(how: str) -> None:
    """Nobody could validate or pass on an answer that is not there: nothing passes for one."""
    model = scripted_model()
    noted = recorder()
    state = run(system(model), how, asked(SIMPLE), "synthesis", noted=noted)
    assert state["stop_reason"] == "budget_refused"
    assert state["documents"]
    assert "validation_agent" not in state["visits"]
    assert spent(noted) == [("synthesis", 0.0)]


@both_doors
def test_an_answer_from_before_stays_when_its_correction_has_no_time(how: str) -> None:
    supervisor = in_turn(
        asking(("transfer_to_synthesis_agent", {})),
        asking(("transfer_to_synthesis_agent", {"task": "Better."}), turn=1),
        AIMessage("end"),
    )
    spent_at: list[float] = []

    def first_only(messages: Any, tools: Any) -> AIMessage:
        assert not spent_at
        spent_at.append(time.monotonic())
        return AIMessage("The first answer.")

    @dataclass(frozen=True)
    class Once:
        name: ClassVar[str] = "once"

        def until_s(self, role: str, budget_s: float) -> float:
            return 0.0 if spent_at else budget_s

    synthesis = agent("synthesis_agent", in_turn(first_only), middleware=[ModelCalls("synthesis")])
    app = team(supervisor, synthesis, params=ANSWERING)
    state = run(app, how, asked("q"), allocation=Once())
    check_whole(state["messages"])
    assert state.get("stop_reason", "") == ""
    assert [text for text in texts(state, "synthesis_agent") if text] == ["The first answer."]
    assert state["messages"][-1].text == "end"


@both_doors
def test_an_answer_to_an_earlier_question_is_none_to_this_one(how: str) -> None:
    supervisor = in_turn(asking(("transfer_to_synthesis_agent", {"task": "Part."})), AIMessage("must not be said"))
    synthesis = agent("synthesis_agent", in_turn(AIMessage("late")), middleware=[ModelCalls("synthesis")])
    earlier = [HumanMessage("before"), AIMessage("An old answer.", name="synthesis_agent"), HumanMessage("now")]
    state = run(team(supervisor, synthesis, params=ANSWERING), how, {"messages": earlier}, "synthesis")
    assert state["stop_reason"] == "budget_refused"
    assert len(supervisor.requests) == 1


@both_doors
def test_the_runs_own_deadline_ends_the_run_whatever_was_allotted(how: str) -> None:
    whole = Deadline(at_s=time.monotonic() - 1.0, limit_s=60.0)
    supervisor = in_turn(asking(("transfer_to_router_agent", {})), AIMessage("must not be said"))
    router = agent("router_agent", in_turn(AIMessage("late")), middleware=[ModelCalls("router")])
    noted = recorder()
    state = run(team(supervisor, router), how, asked("q"), "router", whole=whole, noted=noted)
    assert state["stop_reason"] == "budget_refused"
    assert spent(noted) == []
    assert len(supervisor.requests) == 1


@both_doors
def test_a_supervisor_inside_an_agent_has_no_more_time_than_the_agent(how: str) -> None:
    """The configuration carries the deadline of the run too, for what waits in checkpoints."""
    working = in_turn(AIMessage("late"))
    inner = team(
        in_turn(asking(("transfer_to_worker", {})), AIMessage("inner end")),
        agent("worker", working, middleware=[ModelCalls("worker")]),
    )
    inner.name = "planner_agent"
    app = team(in_turn(asking(("transfer_to_planner_agent", {})), AIMessage("end")), inner)
    state = run(app, how, asked("q"), "planner", configurable=True)
    assert working.requests == []
    assert state["messages"][-1].text == "end"
