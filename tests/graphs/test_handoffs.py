"""Handoff and forward tools: parent commands, fan-out, and conversations that stay whole (supervisor.md 3)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from graph_fakes import (
    agent,
    asked,
    asking,
    both_doors,
    called,
    check_whole,
    in_turn,
    run_whole,
    saying,
    team,
    texts,
)
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from retrieval_fakes import runtime

from docmind_lab.core.errors import GraphError
from docmind_lab.systems.docmind.graphs import (
    MultiAgentGraphState,
    SupervisorBuildParams,
    create_forward_message_tool,
    create_handoff_tool,
)
from docmind_lab.systems.docmind.graphs.handoff import normalised_name

FORWARD = create_forward_message_tool(supervisor_name="supervisor")


@pytest.mark.parametrize(
    ("name", "normalised"),
    [("router_agent", "router_agent"), (" Doc  Reader ", "doc_reader"), ("a.b/c", "a_b_c"), ("Ünder", "nder")],
)
def test_a_tools_name_is_the_agents_in_lower_case_without_odd_characters(name: str, normalised: str):
    assert normalised_name(name) == normalised
    assert create_handoff_tool(agent_name=name).name == f"transfer_to_{normalised}"


def test_a_handoff_tool_takes_a_name_and_a_description():
    made = create_handoff_tool(agent_name="a", name="ask_a", description="Ask A.")
    assert (made.name, made.description) == ("ask_a", "Ask A.")


def test_a_name_without_letters_has_no_tool():
    with pytest.raises(GraphError, match="router_agent"):
        create_handoff_tool(agent_name="!?")


def test_a_handoff_outside_a_supervisor_says_so():
    handoff = create_handoff_tool(agent_name="a")
    with pytest.raises(GraphError, match="outside a supervisor"):
        handoff.func(runtime=runtime({"messages": []}))  # type: ignore[attr-defined]


class Meeting:
    """Agents that go on only when `size` of them are at work at the same time; counts how many are."""

    def __init__(self, size: int) -> None:
        self.size, self.peak, self.tasks, self._inside = size, 0, [], 0
        self._lock, self._barrier = threading.Lock(), threading.Barrier(size)
        self._waiting: list[asyncio.Event] = []

    def _enter(self, state: Any, by: int) -> None:
        with self._lock:
            self._inside += by
            self.peak = max(self.peak, self._inside)
            if by > 0:
                self.tasks.append((state["task"], state["fan_out_index"]))

    def meet(self, state: Any) -> dict[str, Any]:
        self._enter(state, 1)
        self._barrier.wait(timeout=20)
        self._enter(state, -1)
        return {"messages": [AIMessage(f"did {state['task']}")]}

    async def meet_async(self, state: Any) -> dict[str, Any]:
        self._enter(state, 1)
        mine = asyncio.Event()
        self._waiting.append(mine)
        if len(self._waiting) == self.size:
            for event in self._waiting:
                event.set()
            self._waiting = []
        await asyncio.wait_for(mine.wait(), timeout=20)
        self._enter(state, -1)
        return {"messages": [AIMessage(f"did {state['task']}")]}

    def agent(self, name: str) -> CompiledStateGraph[Any, Any, Any, Any]:
        node: Any = RunnableLambda(self.meet, self.meet_async)
        return StateGraph(MultiAgentGraphState).add_node("meet", node).add_edge("__start__", "meet").compile(name=name)


@both_doors
def test_several_handoffs_in_one_message_run_side_by_side(how: str):
    meeting = Meeting(size=3)
    request = asking(*(("transfer_to_a", {"task": task}) for task in ("x", "y")), ("transfer_to_b", {"task": "z"}))
    app = team(in_turn(request, AIMessage("end")), meeting.agent("a"), meeting.agent("b"))
    state = run_whole(app, how)
    assert meeting.peak == 3
    assert sorted(meeting.tasks) == [("x", 0), ("y", 1), ("z", 2)]
    # In the order of the message, whoever was quicker.
    assert texts(state)[-4:] == ["did x", "did y", "did z", "end"]


@both_doors
@pytest.mark.parametrize("bound", [1, 2])
@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["plain", "with a checkpointer and a config"])
def test_no_more_agents_run_side_by_side_than_max_concurrent_agents(how: str, bound: int, saver: Any):
    meeting = Meeting(size=bound)
    request = asking(*(("transfer_to_a", {"task": str(number)}) for number in range(6)))
    params = SupervisorBuildParams(max_concurrent_agents=bound)
    app = team(in_turn(request, AIMessage("end")), meeting.agent("a"), params=params, checkpointer=saver)
    configured = {"recursion_limit": 40, "configurable": {"thread_id": f"{how} {bound}"}}
    state = run_whole(app if saver is None else app.with_config(configured), how)
    assert meeting.peak == bound
    assert texts(state, "a") == [f"did {number}" for number in range(6)]


@both_doors
def test_forwarding_ends_the_run_with_the_message_unchanged(how: str):
    blocks = [{"type": "text", "text": "Said "}, {"type": "text", "text": "so. [d#1]"}]
    supervisor = in_turn(
        asking(("transfer_to_a", {})), asking(("forward_message", {"from_agent": "a"}), turn=1), AIMessage("too much")
    )
    app = team(supervisor, agent("a", in_turn(AIMessage(blocks))), extra_tools=[FORWARD])
    state = run_whole(app, how)
    last = state["messages"][-1]
    assert (last.content, last.name) == (blocks, "supervisor")
    assert called(state) == ["transfer_to_a"], "the request to forward is not part of the conversation"
    assert len(supervisor.requests) == 2


@both_doors
def test_forwarding_from_an_unknown_agent_is_an_error_the_model_can_see(how: str):
    supervisor = in_turn(
        asking(("transfer_to_a", {})), asking(("forward_message", {"from_agent": "b"}), turn=1), AIMessage("end")
    )
    state = run_whole(team(supervisor, agent("a", saying("x")), extra_tools=[FORWARD]), how)
    seen = supervisor.requests[2][-1]
    assert isinstance(seen, ToolMessage)
    assert seen.status == "error"
    assert seen.text == "Error: no message from 'b'; messages came from a."
    assert texts(state)[-1] == "end"


def test_forwarding_the_same_message_for_two_questions_answers_both():
    forward = asking(("forward_message", {"from_agent": "a"}))
    supervisor = in_turn(asking(("transfer_to_a", {})), forward, forward)
    app = team(supervisor, agent("a", saying("said")), extra_tools=[FORWARD], checkpointer=InMemorySaver())
    for _ in range(2):
        state = run_whole(app, "invoke", configurable={"thread_id": "t"})
    assert [m.text for m in state["messages"] if m.name == "supervisor" and m.text] == ["said", "said"]
    assert texts(state)[-2:] == ["q", "said"]


@both_doors
def test_forwarding_and_handing_over_in_one_message_hands_over(how: str):
    for order in (("transfer_to_a", "forward_message"), ("forward_message", "transfer_to_a")):
        arguments = {"transfer_to_a": {}, "forward_message": {"from_agent": "a"}}
        both = asking(*((name, arguments[name]) for name in order), turn=1)
        supervisor = in_turn(asking(("transfer_to_a", {})), both, AIMessage("end"))
        state = run_whole(team(supervisor, agent("a", saying("x")), extra_tools=[FORWARD]), how)
        assert texts(state, "a") == ["x", "x"]
        assert texts(state)[-1] == "end"


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"meaning of {word}"


@both_doors
@pytest.mark.parametrize("first", [True, False])
def test_a_handoff_beside_another_tool_leaves_no_orphan(how: str, first: bool):
    calls = [("transfer_to_a", {}), ("look_up", {"word": "w"})]
    supervisor = in_turn(asking(*(calls if first else calls[::-1])), AIMessage("end"))
    state = run_whole(team(supervisor, agent("a", saying("x")), extra_tools=[look_up]), how)
    assert called(state) == ["transfer_to_a"]


def test_a_providers_own_copy_of_a_lost_call_is_lost_too():
    request = asking(("transfer_to_a", {}), ("look_up", {"word": "w"}))
    request.content = [
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "t0c0", "name": "transfer_to_a", "input": {}},
        {"type": "function_call", "call_id": "t0c1", "id": "fc", "name": "look_up", "arguments": "{}"},
    ]
    request.additional_kwargs = {"tool_calls": [{"id": "t0c1"}], "refusal": None}
    request.invalid_tool_calls = [{"name": "x", "args": "{", "id": "bad", "error": None, "type": "invalid_tool_call"}]
    state = run_whole(
        team(in_turn(request, AIMessage("end")), agent("a", saying("x")), extra_tools=[look_up]), "invoke"
    )
    kept = state["messages"][1]
    assert [block["type"] for block in kept.content] == ["text", "tool_use"]
    assert kept.additional_kwargs == {"refusal": None}
    assert kept.invalid_tool_calls == []


@both_doors
@pytest.mark.parametrize("ending", ["handoff", "forward", "answer"])
def test_what_the_supervisor_looked_up_before_stays_in_the_conversation(how: str, ending: str):
    last = {
        "handoff": [asking(("transfer_to_a", {}), turn=2), AIMessage("end")],
        "forward": [asking(("forward_message", {"from_agent": "a"}), turn=2)],
        "answer": [AIMessage("end")],
    }[ending]
    supervisor = in_turn(asking(("transfer_to_a", {})), asking(("look_up", {"word": "w"}), turn=1), *last)
    state = run_whole(team(supervisor, agent("a", saying("x")), extra_tools=[look_up, FORWARD]), how)
    assert texts(state).count("meaning of w") == 1


@both_doors
def test_of_two_handoffs_the_refused_one_is_answered_too(how: str):
    twice = asking(("transfer_to_a", {}), ("transfer_to_b", {}), turn=1)
    supervisor = in_turn(asking(("transfer_to_a", {})), twice, AIMessage("end"))
    params = SupervisorBuildParams(max_visits=1)
    state = run_whole(team(supervisor, agent("a", saying("x")), agent("b", saying("y")), params=params), how)
    assert texts(state, "a") == ["x"]
    assert texts(state, "b") == ["y"]
    (refused,) = [m for m in state["messages"] if isinstance(m, ToolMessage) and m.status == "error"]
    assert refused.name == "transfer_to_a"
    assert refused in supervisor.requests[2]


def test_an_agent_gets_the_conversation_and_its_task_alone():
    model = saying("x")
    supervisor = in_turn(asking(("transfer_to_a", {"task": "one"}), ("transfer_to_b", {"task": "two"})), AIMessage("e"))
    other = saying("y")
    run_whole(team(supervisor, agent("a", model), agent("b", other)), "invoke")
    for one, task in ((model, "one"), (other, "two")):
        (request,) = one.requests
        check_whole(request)
        assert [m.text for m in request if isinstance(m, HumanMessage)] == ["q", f"Task: {task}"]


def test_a_handoff_tool_works_in_an_agent_of_ones_own():
    supervisor = create_agent(
        in_turn(asking(("transfer_to_a", {}))),
        tools=[create_handoff_tool(agent_name="a")],
        state_schema=MultiAgentGraphState,
        name="s",
    )
    graph = StateGraph(MultiAgentGraphState).add_node("s", supervisor, destinations=("a",))
    graph.add_node("a", lambda state: {"messages": [AIMessage("here")]}).add_edge("__start__", "s").add_edge("a", END)
    state = graph.compile().invoke(asked("q"))
    check_whole(state["messages"])
    assert texts(state)[-1] == "here"
