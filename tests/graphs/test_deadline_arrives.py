"""The deadline in the state reaches every role's middleware and tools (supervisor.md 18), and cut agents keep what
they have (supervisor.md 9, 23).
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import pytest
from chains import chain
from graph_fakes import (
    COMPLEX,
    SIMPLE,
    FakeModel,
    agent,
    asked,
    asking,
    both_doors,
    called,
    docmind,
    in_turn,
    recorder,
    run_whole,
    saying,
    scripted_model,
    team,
    texts,
)
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from docmind_lab.alternatives import Cooperative, Unguarded
from docmind_lab.core.deadlines import DEADLINE_KEY, Deadline
from docmind_lab.core.errors import BudgetRefused, DeadlineError
from docmind_lab.core.levels import ROLES, SUPERVISOR_ROLE
from docmind_lab.network.recorder import recording
from docmind_lab.systems.base.model_calls import ModelCalls
from docmind_lab.systems.docmind.graphs import MultiAgentGraphState, SupervisorBuildParams
from docmind_lab.systems.docmind.graphs.roles import role_middleware
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources

EVERYONE = {*ROLES, SUPERVISOR_ROLE}
ABSENT = "absent"


class Probe(AgentMiddleware[MultiAgentGraphState, Any, Any]):
    """Notes the deadline that each model and tool call of a role sees; adds no schema of its own."""

    def __init__(self, role: str, seen: Seen) -> None:
        super().__init__()
        self.role, self.seen = role, seen

    @property
    def name(self) -> str:
        return f"Probe[{self.role}]"

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        self.seen.at(self.role, "model", request.state)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self.seen.at(self.role, "model", request.state)
        return await handler(request)

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.seen.at(self.role, "tool", request.state)
        self.seen.at(self.role, "tool", request.runtime.state)
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.seen.at(self.role, "tool", request.state)
        self.seen.at(self.role, "tool", request.runtime.state)
        return await handler(request)


class SchemalessProbe(Probe):
    """A probe in an agent that does not carry our state."""

    state_schema = AgentState


class Seen:
    """What the probes have seen: (role, "model" or "tool") → the deadlines."""

    def __init__(self) -> None:
        self.deadlines: dict[tuple[str, str], list[Any]] = defaultdict(list)

    def at(self, role: str, place: str, state: Any) -> None:
        self.deadlines[role, place].append(state.get(DEADLINE_KEY, ABSENT))

    def roles_without(self, deadline: float) -> set[str]:
        """Roles in which some call saw something else."""
        return {role for (role, _), seen in self.deadlines.items() if set(seen) != {deadline}}


def probed(model: FakeModel, found_in: RetrievalResources, seen: Seen) -> CompiledStateGraph[Any, Any, Any, Any]:
    return docmind(
        model,
        found_in,
        middleware=lambda role: [Probe(role, seen)],
        supervisor_middleware=role_middleware(SUPERVISOR_ROLE, None, [Probe(SUPERVISOR_ROLE, seen)]),
    )


@both_doors
def test_the_deadline_reaches_middleware_and_tools_of_every_role(found_in: RetrievalResources, how: str):
    seen, model, deadline = Seen(), scripted_model(), time.monotonic() + 60
    # A complex question: the planner is in, and retrieval runs side by side.
    state = run_whole(probed(model, found_in, seen), how, {**asked(COMPLEX), DEADLINE_KEY: deadline})
    assert {role for role, place in seen.deadlines if place == "model"} == EVERYONE
    # Synthesis has no tools.
    assert {role for role, place in seen.deadlines if place == "tool"} == EVERYONE - {"synthesis"}
    assert seen.roles_without(deadline) == set()
    # One model call each of two, one tool call each of two noted twice.
    assert len(seen.deadlines["retrieval", "model"]) == 2
    assert len(seen.deadlines["retrieval", "tool"]) == 4
    assert state[DEADLINE_KEY] == deadline
    assert all(0 < settings["timeout"] <= 60 for settings in model.settings)


@both_doors
def test_without_a_deadline_there_is_none_anywhere(found_in: RetrievalResources, how: str):
    seen, model = Seen(), scripted_model()
    state = run_whole(probed(model, found_in, seen), how, asked(COMPLEX))
    assert {role for role, _ in seen.deadlines} == EVERYONE
    assert seen.roles_without(ABSENT) == set()  # type: ignore[arg-type]
    assert DEADLINE_KEY not in state
    assert model.settings == [{}] * len(model.settings), "something was read that was not there"


def test_a_role_whose_schema_lacks_the_key_is_detected():
    """LangGraph drops the deadline silently; the probe says whose it dropped."""
    seen, deadline = Seen(), time.monotonic() + 60
    kept = agent("kept", saying("x"), middleware=[Probe("kept", seen)])
    lacking = create_agent(saying("y"), tools=[], middleware=[SchemalessProbe("lacking", seen)], name="lacking")
    supervisor = in_turn(asking(("transfer_to_kept", {}), ("transfer_to_lacking", {})), AIMessage("end"))
    run_whole(team(supervisor, kept, lacking), "invoke", {**asked("q"), DEADLINE_KEY: deadline})
    assert seen.roles_without(deadline) == {"lacking"}


def test_model_calls_brings_the_key_to_an_agent_whose_schema_lacks_it():
    seen, deadline = Seen(), time.monotonic() + 60
    middleware = [SchemalessProbe("a", seen), ModelCalls("a")]
    bare = create_agent(saying("x"), tools=[], middleware=middleware, name="a")
    supervisor = in_turn(asking(("transfer_to_a", {})), AIMessage("end"))
    run_whole(team(supervisor, bare), "invoke", {**asked("q"), DEADLINE_KEY: deadline})
    assert seen.roles_without(deadline) == set()


# ---- agents that are cut


@tool
def find(runtime: ToolRuntime[Any, Any]) -> Any:
    """Find a document."""
    done = ToolMessage("found", tool_call_id=runtime.tool_call_id)
    return Command(update={"documents": [{"id": "d#1", "content": "c"}], "messages": [done]})


def cut(error: DeadlineError) -> Any:
    def say(messages: Any, tools: Any) -> AIMessage:
        raise error

    return say


def error(kind: str) -> DeadlineError:
    over = Deadline(at_s=time.monotonic() - 1, limit_s=1.0)
    return over.exceeded("a", "network") if kind == "deadline" else over.refused("a", "middleware")


@both_doors
@pytest.mark.parametrize("kind", ["deadline", "budget_refused"])
def test_an_agent_that_is_cut_keeps_what_it_found_and_ends_the_run(how: str, kind: str):
    supervisor = in_turn(asking(("transfer_to_a", {})), AIMessage("must not be said"))
    searching = agent("a", in_turn(asking(("find", {})), cut(error(kind))), tools=[find])
    state = run_whole(team(supervisor, searching), how, asked("q"))
    assert [document["id"] for document in state["documents"]] == ["d#1"]
    assert state["stop_reason"] == kind
    assert len(supervisor.requests) == 1


@pytest.mark.parametrize("alternative", [Unguarded(), Cooperative()], ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["deadline", "budget_refused"])
def test_the_outcome_of_a_cut_run_is_partial_and_says_why(alternative: Any, kind: str):
    supervisor = in_turn(asking(("transfer_to_a", {})), AIMessage("must not be said"))
    searching = agent("a", in_turn(asking(("find", {})), cut(error(kind))), tools=[find])
    noted = recorder()
    with recording(noted):
        outcome = alternative.run(team(supervisor, searching), {"messages": [HumanMessage("q")]}, noted.deadline, noted)
    assert (outcome.outcome, outcome.stop_reason) == ("partial", kind)
    assert [document["id"] for document in outcome.documents] == ["d#1"]


@both_doors
@pytest.mark.parametrize("mode", ["last_message", "full_history"])
def test_an_agent_cut_in_its_tool_leaves_no_orphan(how: str, mode: Any):
    @tool
    def late() -> str:
        """Come too late."""
        raise error("deadline")

    searching = agent("a", in_turn(asking(("find", {})), asking(("late", {}), turn=1)), tools=[find, late])
    supervisor = in_turn(asking(("transfer_to_a", {})), AIMessage("must not be said"))
    state = run_whole(team(supervisor, searching, params=SupervisorBuildParams(output_mode=mode)), how, asked("q"))
    assert "late" not in called(state)
    assert state["stop_reason"] == "deadline"
    assert [document["id"] for document in state["documents"]] == ["d#1"]


@both_doors
def test_of_parallel_agents_one_that_is_cut_takes_nothing_from_the_others(how: str):
    supervisor = in_turn(asking(("transfer_to_a", {}), ("transfer_to_b", {})), AIMessage("end"))
    finding = agent("b", in_turn(asking(("find", {})), AIMessage("found it")), tools=[find])
    state = run_whole(team(supervisor, agent("a", in_turn(cut(error("deadline")))), finding), how, asked("q"))
    assert texts(state, "b") == ["found it"]
    assert [document["id"] for document in state["documents"]] == ["d#1"]
    assert state["stop_reason"] == "deadline"


def test_a_supervisor_without_budget_is_refused(found_in: RetrievalResources):
    app = docmind(scripted_model(), found_in, supervisor_middleware=role_middleware(SUPERVISOR_ROLE))
    with pytest.raises(BudgetRefused, match="supervisor"):
        app.invoke({**asked(SIMPLE), DEADLINE_KEY: time.monotonic()})


def test_a_deadline_is_in_no_checkpoint_and_the_next_run_on_the_thread_has_none() -> None:
    """Spec 13: a monotonic instant never survives its run."""
    seen: list[float | None] = []

    def look(state: MultiAgentGraphState) -> dict[str, object]:
        seen.append(state.get("deadline_ts"))
        return {"messages": []}

    compiled = chain(MultiAgentGraphState, first=look, second=look).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    compiled.invoke({"messages": [], "deadline_ts": 5.0}, config)
    assert "deadline_ts" not in compiled.get_state(config).values
    compiled.invoke({"messages": []}, config)
    assert seen == [5.0, 5.0, None, None]
