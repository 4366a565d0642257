"""The supervisor graph and its five roles, end to end without a server (supervisor.md 1, 2, 4-6, 8, 9)."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import functools
import inspect
import threading
import time
from pathlib import Path
from typing import Any

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
    saying,
    scripted_model,
    team,
    texts,
)
from langchain.agents import AgentState, create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.managed import RemainingSteps
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

import docmind_lab.systems.docmind.graphs
from docmind_lab.alternatives import Cooperative, Unguarded
from docmind_lab.core.errors import ConfigurationError, GraphError
from docmind_lab.network.recorder import recording
from docmind_lab.systems.base.observer import RunCallbacks
from docmind_lab.systems.base.state import keep_reason, merge_documents
from docmind_lab.systems.docmind.graphs import (
    SUPERVISOR_PROMPT,
    MultiAgentGraphState,
    SupervisorBuildParams,
    build_multi_agent_supervisor_graph,
    create_forward_message_tool,
)
from docmind_lab.systems.docmind.graphs.roles import role_tools
from docmind_lab.systems.docmind.graphs.supervisor_state import merge_visits
from docmind_lab.systems.docmind.retrieval.tool import RetrievalResources

THREAD = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def supervisor_app(found_in: RetrievalResources) -> CompiledStateGraph[Any, Any, Any, Any]:
    return docmind(scripted_model(), found_in)


# ---- 1: the builder, and ADR-011 as it is written


def test_the_skeleton_of_adr_011_runs_as_written(found_in: RetrievalResources):
    model, store = scripted_model(), InMemoryStore()
    router_tools, planner_tools = role_tools("router"), role_tools("planner")
    retrieval_tools, synthesis_tools = role_tools("retrieval", found_in), role_tools("synthesis")
    validation_tools = role_tools("validation")
    router_agent = create_agent(model, tools=router_tools, state_schema=MultiAgentGraphState, name="router_agent")
    planner_agent = create_agent(model, tools=planner_tools, state_schema=MultiAgentGraphState, name="planner_agent")
    retrieval_agent = create_agent(
        model, tools=retrieval_tools, state_schema=MultiAgentGraphState, name="retrieval_agent"
    )
    synthesis_agent = create_agent(
        model, tools=synthesis_tools, state_schema=MultiAgentGraphState, name="synthesis_agent"
    )
    validation_agent = create_agent(
        model, tools=validation_tools, state_schema=MultiAgentGraphState, name="validation_agent"
    )
    graph = build_multi_agent_supervisor_graph(
        [router_agent, planner_agent, retrieval_agent, synthesis_agent, validation_agent],
        model=model,
        prompt=SUPERVISOR_PROMPT,
        state_schema=MultiAgentGraphState,
        extra_tools=[create_forward_message_tool(supervisor_name="supervisor")],
        params=SupervisorBuildParams(output_mode="last_message"),
    )
    compiled = graph.compile(checkpointer=InMemorySaver(), store=store)
    result = compiled.invoke(asked(SIMPLE), THREAD)
    check_whole(result["messages"])
    assert "[lock#1]" in result["messages"][-1].text
    assert compiled.get_state(THREAD).values["messages"] == result["messages"]


def test_supervisor_boots_with_agents(supervisor_app: CompiledStateGraph[Any, Any, Any, Any]):
    """ADR-011's own test."""
    result = supervisor_app.invoke({"messages": [{"role": "user", "content": "hi"}]})
    assert "messages" in result


# ---- 2: options


def reading_agent(*names: str) -> CompiledStateGraph[Any, Any, Any, Any]:
    """An agent that calls tools of these names at once, then says "read"."""

    @tool
    def read(what: str) -> str:
        """Read."""
        return f"text of {what}"

    model = in_turn(asking(*(("read", {"what": name}) for name in names)), AIMessage("read"))
    return agent("reader", model, tools=[read])


@pytest.mark.parametrize(
    ("mode", "expected"), [("last_message", ["read"]), ("full_history", ["", "text of x", "read"])]
)
def test_output_mode_says_what_an_agent_adds_and_without_handoff_messages_there_is_no_breadcrumb(
    mode: Any, expected: list[str]
):
    supervisor = in_turn(asking(("transfer_to_reader", {})), AIMessage("done"))
    params = SupervisorBuildParams(output_mode=mode, add_handoff_messages=False)
    state = team(supervisor, reading_agent("x"), params=params).invoke(asked("q"))
    check_whole(state["messages"])
    assert texts(state) == ["q", *expected, "done"]
    assert "transfer_to_reader" not in called(state)


def test_structured_output_mode_is_refused_with_the_remedy():
    with pytest.raises(ConfigurationError, match=r"structured.*state_schema.*last_message"):
        SupervisorBuildParams(output_mode="structured")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"output_mode": "structured"}, r"structured.*state_schema.*last_message"),
        ({"output_mode": "all"}, "output_mode"),
        ({"max_concurrent_agents": 0}, "max_concurrent_agents"),
        ({"max_visits": 0}, "max_visits"),
        ({"add_handoff_back_messages": True}, "did you mean add_handoff_messages"),
    ],
)
def test_an_unusable_option_is_refused_by_name(options: dict[str, Any], named: str):
    with pytest.raises(ConfigurationError, match=named):
        SupervisorBuildParams(**options)


# ---- 4: deltas


def test_last_message_keeps_two_when_the_last_is_a_tools_result(found_in: RetrievalResources):
    supervisor = in_turn(asking(("transfer_to_retrieval_agent", {})), AIMessage("end"))
    searching = agent("retrieval_agent", scripted_model(), tools=role_tools("retrieval", found_in))
    state = team(supervisor, searching, params=SupervisorBuildParams(add_handoff_messages=False)).invoke(asked(SIMPLE))
    check_whole(state["messages"])
    assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]


def test_last_message_keeps_every_result_of_the_message_that_asked(found_in: RetrievalResources):
    searches = [("retrieve_documents", {"query": query}) for query in ("lock", "generator", "values")]
    searching = agent("retrieval_agent", in_turn(asking(*searches)), tools=role_tools("retrieval", found_in))
    supervisor = in_turn(asking(("transfer_to_retrieval_agent", {})), AIMessage("end"))
    state = team(supervisor, searching).invoke(asked(SIMPLE))
    check_whole(state["messages"])
    assert called(state).count("retrieve_documents") == 3


@pytest.mark.parametrize("mode", ["last_message", "full_history"])
def test_parallel_agents_neither_duplicate_nor_overwrite(found_in: RetrievalResources, mode: Any):
    tasks = ("a lock released", "a generator yields", "entering a context")
    supervisor = in_turn(
        asking(*(("transfer_to_retrieval_agent", {"task": task}) for task in tasks)), AIMessage("end", id="end")
    )
    searching = agent("retrieval_agent", scripted_model(), tools=role_tools("retrieval", found_in))
    state = team(supervisor, searching, params=SupervisorBuildParams(output_mode=mode)).invoke(asked(SIMPLE))
    check_whole(state["messages"])
    assert called(state).count("retrieve_documents") == len(tasks)
    assert not any(isinstance(m, HumanMessage) for m in state["messages"][1:]), "a task leaked into the parent"
    ids = [document["id"] for document in state["documents"]]
    assert sorted(ids) == ["enter#1", "lock#1", "lock#2", "yield#1", "yield#2"]


@pytest.mark.parametrize("mode", ["last_message", "full_history"])
def test_an_agent_returns_what_is_new_and_nothing_else(mode: Any):
    supervisor = in_turn(asking(("transfer_to_reader", {"task": "part"})), AIMessage("end"))
    app = team(supervisor, reading_agent("x"), params=SupervisorBuildParams(output_mode=mode))
    inputs = {**asked("q"), "deadline_ts": time.monotonic() + 60, "documents": [{"id": "d"}]}
    (update,) = [step["reader"] for step in app.stream(inputs, stream_mode="updates") if "reader" in step]
    assert list(update) == ["messages"]
    assert [m.text for m in update["messages"]] == ["", "text of x", "read"][-1 if mode == "last_message" else 0 :]


def test_an_agent_cannot_change_what_it_was_handed():
    def change(state: dict[str, Any]) -> dict[str, Any]:
        changed = {"deadline_ts": 1e12, "task": "other", "handoff_ordinal": 9, "fan_out_index": 9, "visits": {"a": 9}}
        return {**changed, "messages": [AIMessage("changed")]}

    node: Any = RunnableLambda(change)
    changing = StateGraph(MultiAgentGraphState).add_node("c", node).add_edge("__start__", "c").compile(name="a")
    supervisor = in_turn(asking(("transfer_to_a", {}), ("transfer_to_a", {})), AIMessage("end"))
    deadline = time.monotonic() + 60
    state = team(supervisor, changing).invoke({**asked("q"), "deadline_ts": deadline})
    assert texts(state, "a") == ["changed", "changed"]
    assert (state["deadline_ts"], state["handoff_ordinal"], state["visits"]) == (deadline, 1, {"a": 1})
    assert "task" not in state


def test_parallel_agents_may_decide_the_same_key():
    supervisor = in_turn(asking(("transfer_to_one", {}), ("transfer_to_two", {})), AIMessage("end"))
    route = {"complexity": "simple"}
    one = agent("one", in_turn(asking(("choose_route", {"strategy": "graph", **route}))), tools=role_tools("router"))
    two = agent("two", in_turn(asking(("choose_route", {"strategy": "hybrid", **route}))), tools=role_tools("router"))
    state = team(supervisor, one, two).invoke(asked("q"))
    assert state["route"]["strategy"] == "hybrid"


def test_a_parent_schema_with_remaining_steps_works_and_is_not_overwritten():
    seen: list[int] = []

    class Counting(MultiAgentGraphState):
        remaining_steps: RemainingSteps

    def look(state: Counting) -> dict[str, Any]:
        seen.append(state["remaining_steps"])
        return {"messages": [AIMessage(f"{len(seen)} looked")]}

    looking = StateGraph(Counting).add_node("look", look).add_edge("__start__", "look").compile(name="a")
    supervisor = in_turn(asking(("transfer_to_a", {}), ("transfer_to_a", {})), AIMessage("end"))
    app = team(supervisor, looking, state_schema=Counting)
    state = app.invoke(asked("q"), {"recursion_limit": 30})
    check_whole(state["messages"])
    assert len(seen) == 2
    # Each one's own count after its first step, not what was left to the parent or to the other agent.
    assert set(seen) == {29}
    assert texts(state)[-1] == "end"


def test_an_agent_with_a_schema_of_its_own_writes_back_what_the_parent_knows():
    class Private(AgentState[Any]):
        note: str
        stop_reason: str

    @tool
    def write(runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        """Write."""
        done = ToolMessage("ok", tool_call_id=runtime.tool_call_id)
        return Command(update={"note": "private", "stop_reason": "horizon", "messages": [done]})

    writing = agent("a", in_turn(asking(("write", {})), AIMessage("x")), tools=[write], state_schema=Private)
    state = team(in_turn(asking(("transfer_to_a", {})), AIMessage("end")), writing).invoke(asked("q"))
    assert "note" not in state
    assert state["stop_reason"] == "horizon"


def test_merging_twice_changes_nothing():
    old, new = [{"id": "a", "score": 1}], [{"id": "a", "score": 2}, {"id": "b", "score": 3}]
    merged = merge_documents(old, new)
    assert merged == [old[0], new[1]]
    assert merge_documents(merged, new) == merged
    assert merge_visits({"a": 2}, {"a": 1, "b": 1}) == {"a": 2, "b": 1}
    assert (keep_reason("", "deadline"), keep_reason("deadline", "error")) == ("deadline", "deadline")


# ---- 5: the five roles


def test_a_simple_question_skips_the_planner(supervisor_app: CompiledStateGraph[Any, Any, Any, Any]):
    state = supervisor_app.invoke(asked(SIMPLE))
    check_whole(state["messages"])
    assert list(state["visits"]) == ["router_agent", "retrieval_agent", "synthesis_agent", "validation_agent"]
    assert "[lock#1]" in state["messages"][-1].text
    assert state["validation"]["verdict"] == "accept"


def test_a_complex_question_is_planned_and_searched_in_parts(supervisor_app: CompiledStateGraph[Any, Any, Any, Any]):
    state = supervisor_app.invoke(asked(COMPLEX))
    check_whole(state["messages"])
    assert state["visits"]["planner_agent"] == 1
    assert called(state).count("retrieve_documents") == len(state["plan"]) == 2
    answer = state["messages"][-1].text
    assert "[lock#2]" in answer
    assert "[yield#1]" in answer


def missing_searches(found_in: RetrievalResources, misses: int) -> RetrievalResources:
    """Resources whose first searches find nothing."""

    class Missing:
        def __init__(self) -> None:
            self.searches = 0

        def query_points(self, **arguments: Any) -> Any:
            self.searches += 1
            response = found_in.client.query_points(**arguments)
            return response.model_copy(update={"points": []}) if self.searches <= misses else response

        def scroll(self, **arguments: Any) -> Any:
            return found_in.client.scroll(**arguments)

    return dataclasses.replace(found_in, client=Missing())  # type: ignore[arg-type]


@pytest.mark.parametrize(("misses", "said"), [(1, "[lock#1]"), (99, "could not confirm")])
def test_validation_sends_the_run_back_once_and_then_answers_or_says_so(
    found_in: RetrievalResources, misses: int, said: str
):
    state = docmind(scripted_model(), missing_searches(found_in, misses)).invoke(asked(SIMPLE))
    check_whole(state["messages"])
    assert state["visits"]["retrieval_agent"] == state["visits"]["validation_agent"] == 2
    assert said in state["messages"][-1].text


# ---- 6: sync and async


def run_as(app: CompiledStateGraph[Any, Any, Any, Any], how: str, question: str) -> dict[str, Any]:
    async def last() -> Any:
        return [state async for state in app.astream(asked(question), stream_mode="values")][-1]

    if how == "invoke":
        return app.invoke(asked(question))
    if how == "stream":
        return list(app.stream(asked(question), stream_mode="values"))[-1]
    return asyncio.run(app.ainvoke(asked(question)) if how == "ainvoke" else last())


def test_every_door_gives_the_same_conversation(found_in: RetrievalResources):
    doors = ("invoke", "stream", "ainvoke", "astream")
    states = [run_as(docmind(scripted_model(), found_in), how, COMPLEX) for how in doors]
    for state in states:
        check_whole(state["messages"])
        assert called(state) == called(states[0])
        said, first = ([text.partition("processing_time_ms")[0] for text in texts(one)] for one in (state, states[0]))
        assert said == first


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_each_door_uses_its_own_mode_of_models_and_tools(
    found_in: RetrievalResources, how: str, monkeypatch: pytest.MonkeyPatch
):
    model, seen = scripted_model(), []
    client, async_client = found_in.client.query_points, found_in.async_client.query_points  # type: ignore[union-attr]

    def query(**arguments: Any) -> Any:
        seen.append("sync")
        return client(**arguments)

    async def query_async(**arguments: Any) -> Any:
        seen.append(f"async in {threading.current_thread().name}")
        return await async_client(**arguments)

    monkeypatch.setattr(found_in.client, "query_points", query)
    monkeypatch.setattr(found_in.async_client, "query_points", query_async)
    run_as(docmind(model, found_in), how, COMPLEX)
    if how == "invoke":
        assert {door.partition(":")[0] for door in model.doors} == {"sync"}
        assert set(seen) == {"sync"}
    else:
        assert set(model.doors) == {"async:MainThread"}
        assert set(seen) == {"async in MainThread"}


def modules_in(function: Any) -> str:
    """The module of what is called in the end."""
    while isinstance(function, functools.partial):
        inner = [part for part in function.args if callable(part)]
        function = inner[0] if inner else function.func
    function = inspect.unwrap(function)
    return f"{function.__module__}.{function.__qualname__}"


def test_an_async_run_hands_nothing_of_ours_to_a_thread(found_in: RetrievalResources, monkeypatch: pytest.MonkeyPatch):
    app = docmind(scripted_model(), found_in, checkpointer=InMemorySaver())

    async def run() -> set[Any]:
        handed: set[Any] = set()
        loop = asyncio.get_running_loop()
        original = loop.run_in_executor

        def noted(executor: Any, function: Any, *arguments: Any) -> Any:
            handed.add(modules_in(function))
            return original(executor, function, *arguments)

        monkeypatch.setattr(loop, "run_in_executor", noted)
        for _ in range(2):
            await app.ainvoke(asked(SIMPLE), THREAD)
        return handed

    # LangSmith prepares its traces in threads, also when tracing is off; nothing else may.
    assert not [name for name in asyncio.run(run()) if not name.startswith("langsmith.")]


def test_nothing_deprecated_is_imported():
    for path in Path(docmind_lab.systems.docmind.graphs.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [m for m in modules if m.startswith(("langgraph.prebuilt", "langgraph_supervisor"))], path.name


# ---- 8: names


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "at least one agent"),
        ([None], "no name"),
        (["  "], "no letter or digit"),
        (["a", "a"], "same name"),
        (["Doc Reader", "doc_reader"], "same name"),
        (["Supervisor"], "same name"),
        (["new-question"], "same name"),
    ],
)
def test_a_name_that_does_not_tell_agents_apart_is_refused(names: list[str | None], message: str):
    agents = [create_agent(saying("x"), tools=[], name=name) for name in names]
    with pytest.raises(GraphError, match=message) as raised:
        build_multi_agent_supervisor_graph(agents, model=saying("y"), prompt="p")
    assert isinstance(raised.value, ValueError), "as langgraph_supervisor has it"


def test_handoff_tools_follow_the_order_of_the_agents():
    offered: list[list[str]] = []

    def say(messages: Any, tools: Any) -> AIMessage:
        offered.append(list(tools))
        return AIMessage("end")

    names = ["zeta", "Alpha Reader", "mid.dle", "beta"]
    team(FakeModel(say=say), *(agent(name, saying("x")) for name in names)).invoke(asked("q"))
    assert offered == [["transfer_to_zeta", "transfer_to_alpha_reader", "transfer_to_mid_dle", "transfer_to_beta"]]


# ---- 9: typed ends, under the control and under A


@pytest.fixture(params=[Unguarded(), Cooperative()], ids=lambda alternative: alternative.name)
def alternative(request: pytest.FixtureRequest) -> Any:
    return request.param


def outcome_of(app: CompiledStateGraph[Any, Any, Any, Any], alternative: Any) -> tuple[Any, list[Any]]:
    noted = recorder()
    with recording(noted):
        limited = app.with_config({"callbacks": [RunCallbacks(noted)], "recursion_limit": 14})
        outcome = alternative.run(limited, {"messages": [HumanMessage("q")]}, noted.deadline, noted)
    assert noted.quiet()
    return outcome, list(noted.snapshot().events)


def test_a_model_that_calls_no_tool_ends_with_no_agent(alternative: Any):
    outcome, _ = outcome_of(team(saying("I know it."), agent("a", saying("x"))), alternative)
    assert (outcome.outcome, outcome.answer, outcome.stop_reason) == ("answered", "I know it.", "no_agent")


def test_a_missing_agent_is_an_error_the_model_can_see(alternative: Any):
    model = in_turn(asking(("transfer_to_nobody", {})), AIMessage("Nobody is there."))
    outcome, _ = outcome_of(team(model, agent("a", saying("x"))), alternative)
    assert outcome.answer == "Nobody is there."
    assert outcome.outcome == "answered"
    seen = model.requests[1][-1]
    assert isinstance(seen, ToolMessage)
    assert seen.status == "error"
    assert "transfer_to_a" in seen.text


def handing_over_for_ever() -> FakeModel:
    return FakeModel(say=lambda messages, tools: asking(("transfer_to_a", {}), turn=len(messages)))


def test_an_endless_loop_of_handoffs_ends_with_the_step_limit(alternative: Any):
    app = team(handing_over_for_ever(), agent("a", saying("a draft")))
    outcome, _ = outcome_of(app, alternative)
    assert (outcome.stop_reason, outcome.outcome, outcome.answer) == ("step_limit", "partial", "a draft")


def test_one_visit_too_many_is_refused_recorded_and_seen_by_the_model(alternative: Any):
    model = handing_over_for_ever()
    app = team(model, agent("a", saying("said")), params=SupervisorBuildParams(max_visits=2))
    _, events = outcome_of(app, alternative)
    refusals = [event for event in events if event.event == "handoff_refused"]
    assert refusals
    assert refusals[0].detail == {"agent": "a", "reason": "visits"}
    seen = next(m for request in model.requests for m in request if isinstance(m, ToolMessage) and m.status == "error")
    assert "a has been handed over to 2 times" in seen.text
    assert len([event for event in events if event.event == "node_started" and event.detail["node"] == "a"]) == 2


def test_how_a_graph_is_entered_is_no_node_of_the_record(alternative: Any):
    _, events = outcome_of(team(saying("x"), agent("a", saying("x"))), alternative)
    assert {event.role for event in events if event.event == "node_started"} == {"supervisor"}


# ---- the next question on the same thread


def test_the_next_question_of_a_thread_starts_afresh(found_in: RetrievalResources):
    app = docmind(scripted_model(), found_in, checkpointer=InMemorySaver(), params=SupervisorBuildParams(max_visits=1))
    for question in (SIMPLE, "What does a generator that yields values do?", SIMPLE):
        state = app.invoke(asked(question), THREAD)
        check_whole(state["messages"])
        assert state["visits"]["retrieval_agent"] == 1
        assert "[" in state["messages"][-1].text
        found = [document["id"] for document in state["documents"]]
    assert len(found) == len(set(found))


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_thread_does_not_stay_stopped(found_in: RetrievalResources, how: str):
    app = docmind(scripted_model(), found_in, checkpointer=InMemorySaver())
    stale = {"stop_reason": "deadline", "visits": {"router_agent": 3}, "documents": [{"id": "old"}], "messages": []}
    app.update_state(THREAD, stale, as_node="router_agent")
    invoke = (lambda q: asyncio.run(app.ainvoke(q, THREAD))) if how == "ainvoke" else lambda q: app.invoke(q, THREAD)
    state = invoke(asked(SIMPLE))
    assert state["stop_reason"] == ""
    assert state["visits"]["router_agent"] == 1
    assert "old" not in [document["id"] for document in state["documents"]]
