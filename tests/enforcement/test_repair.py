"""`repair`: a thread that was cut is left as a provider takes it (runway.md 4)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import aiosqlite
import pytest
from deepagents import create_deep_agent
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from langgraph.types import Command, interrupt
from often import often
from script_modules import load_script
from scripted_model import ScriptedModel, calling, scripted

import docmind_lab as dl
from docmind_lab.alternatives.enforcement.repaired_threads import WAS_CUT, is_same, mend
from docmind_lab.core.errors import ConfigurationError, GraphError
from docmind_lab.services.conversation_rules import refusal_of
from docmind_lab.testing import cut_at

ROOT = Path(__file__).parents[2]
QUESTION = "How deep is Fairhaven?"
THREAD: Any = {"configurable": {"thread_id": "captain@harbour.example"}}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

AGENTS: dict[str, Callable[..., Any]] = {
    "create_agent": create_agent,
    "create_react_agent v1": lambda *given, **options: create_react_agent(*given, version="v1", **options),
    "create_react_agent v2": create_react_agent,
    "create_deep_agent": create_deep_agent,
}
# The one node of "v1" runs both tools: what one of them returned is in no thread.
KEEPS_RESULTS = [name for name in AGENTS if not name.endswith("v1")]


def two_tools(reached: asyncio.Event, *, are_both_called: bool = True) -> list[Any]:
    ended = asyncio.Event()
    if not are_both_called:
        ended.set()

    @tool
    async def quick(text: str) -> str:
        """Return at once."""
        ended.set()
        return "done"

    @tool
    async def endless(text: str) -> str:
        """Wait for ever, and say so when the other has ended and what awaits it has seen that."""
        await ended.wait()
        for _ in range(100):
            await asyncio.sleep(0)
        reached.set()
        await asyncio.Event().wait()
        return "never"

    return [quick, endless]


async def cut_agent(make: Callable[..., Any], saver: Any, alternative: str = "C") -> tuple[Any, Any, ScriptedModel]:
    """Cut an agent once one of two tools has ended, its result in the thread if that is kept; return all there is."""
    reached = asyncio.Event()
    model = scripted(calling("quick", "endless"), AIMessage("The end."), AIMessage("More."))
    graph = make(model=model, tools=two_tools(reached), checkpointer=saver)

    async def quick_has_ended() -> None:
        await reached.wait()
        keeps = make in [AGENTS[name] for name in KEEPS_RESULTS]
        while keeps and len((await graph.aget_state(THREAD)).values.get("messages", ())) <= 2:
            await asyncio.sleep(0)

    agent = dl.enforce(graph, 60, alternative)
    return await agent.ainvoke({"messages": [HumanMessage("Go")]}, THREAD, cancel=quick_has_ended()), graph, model


def told(messages: Any) -> dict[str, tuple[str, str]]:
    """Return the content and the status of each tool's result."""
    return {each.name: (each.content, each.status) for each in messages if isinstance(each, ToolMessage)}


CUT_RESULT = (WAS_CUT, "error")


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_the_next_message_is_taken_and_a_finished_tool_keeps_its_result(make: Any) -> None:
    async def study() -> None:
        result, graph, model = await cut_agent(make, InMemorySaver())
        assert (result.was_cut, result.stop_reason) == (True, "caller_left")
        done = await result.arepair()
        assert repr(done) == "Repair: calls of endless were cut"
        await graph.ainvoke({"messages": [HumanMessage("And now?")]}, THREAD)
        assert told(model.asked[-1]) == {"quick": ("done", "success"), "endless": CUT_RESULT}
        assert refusal_of({"messages": convert_to_openai_messages(model.asked[-1])}, "openai_chat") is None
        # Nothing is left to mend.
        assert repr(await dl.arepair(graph, THREAD)) == "Repair: no call was cut"

    asyncio.run(study())


@pytest.mark.parametrize("make", [AGENTS[name] for name in KEEPS_RESULTS], ids=KEEPS_RESULTS)
def test_a_repaired_thread_that_is_resumed_goes_on_with_the_model(make: Any) -> None:
    async def study() -> None:
        _, graph, model = await cut_agent(make, InMemorySaver())
        await dl.arepair(graph, THREAD)
        state = await graph.ainvoke(None, THREAD)
        assert told(model.asked[-1]) == {"quick": ("done", "success"), "endless": CUT_RESULT}
        assert state["messages"][-1].text == "The end."

    asyncio.run(study())


def test_a_repaired_thread_goes_on_after_its_tools_and_does_not_begin_anew() -> None:
    def cut(request: Any, execute: Any) -> Any:
        raise Cut

    builder = StateGraph(MessagesState).add_node("greet", lambda _: {}).add_edge(START, "greet")
    builder.add_node("model", lambda _: {"messages": [calling("quick")]}).add_edge("greet", "model")
    builder.add_node("tools", ToolNode(two_tools(asyncio.Event()), wrap_tool_call=cut)).add_edge("model", "tools")
    graph: Any = builder.add_edge("tools", "model").compile(InMemorySaver())
    with pytest.raises(Cut):
        graph.invoke({"messages": [HumanMessage("Go")]}, THREAD)
    assert dl.repair(graph, THREAD).calls_cut == ("quick",)
    assert graph.get_state(THREAD).next == ("model",)


@pytest.mark.parametrize("is_resumed", [True, False])
@pytest.mark.parametrize("keeps_its_thread", [True, None])
def test_a_sub_agent_that_was_cut_inside_a_node_has_its_thread_mend(keeps_its_thread: Any, is_resumed: bool) -> None:
    async def study() -> None:
        reached = asyncio.Event()
        model = scripted(calling("endless"), AIMessage("The end."))
        inner: Any = create_agent(model, two_tools(reached, are_both_called=False), checkpointer=keeps_its_thread)
        graph: Any = (
            StateGraph(MessagesState).add_node("agent", inner).add_edge(START, "agent").compile(InMemorySaver())
        )
        agent = dl.enforce(graph, 60, "C")
        result = await agent.ainvoke({"messages": [HumanMessage("Go")]}, THREAD, cancel=reached.wait())
        assert (await result.arepair()).calls_cut == ("endless",)
        await graph.ainvoke(None if is_resumed else {"messages": [HumanMessage("And now?")]}, THREAD)
        assert refusal_of({"messages": convert_to_openai_messages(model.asked[-1])}, "openai_chat") is None
        assert told(model.asked[-1]) == ({"endless": CUT_RESULT} if keeps_its_thread or is_resumed else {})

    asyncio.run(study())


@contextlib.asynccontextmanager
async def sqlite_saver(folder: Path) -> AsyncIterator[Any]:
    async with aiosqlite.connect(folder / "threads.sqlite") as connection:
        yield AsyncSqliteSaver(connection)


@contextlib.asynccontextmanager
async def postgres_saver(folder: Path) -> AsyncIterator[Any]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async with AsyncPostgresSaver.from_conn_string("") as saver:
        await saver.setup()
        yield saver


@pytest.mark.parametrize("opened", [sqlite_saver, postgres_saver])
def test_a_thread_in_a_store_is_repaired_on_an_event_loop_by_another_process(
    opened: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if opened is postgres_saver:
        request.getfixturevalue("postgres_server")

    async def study() -> None:
        async with opened(tmp_path) as saver:
            await cut_agent(create_agent, saver)
            # The call leaves after 0.1 s what has not unwound by then, which on a busy machine may be a write.
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        async with opened(tmp_path) as saver:
            model = scripted(AIMessage("The end."))
            graph: Any = create_agent(model, two_tools(asyncio.Event()), checkpointer=saver)
            assert (await dl.arepair(graph, THREAD)).calls_cut == ("endless",)
            await graph.ainvoke({"messages": [HumanMessage("And now?")]}, THREAD)
            assert told(model.asked[-1]) == {"quick": ("done", "success"), "endless": CUT_RESULT}

    asyncio.run(study())


# ---- real checkpointers


class Cut(Exception):
    """The run is cut."""


def leave_open_calls(saver: Any) -> None:
    """Run a graph in the calling thread whose tools are cut at their work."""

    def cut(state: Any) -> Any:
        raise Cut

    builder = StateGraph(MessagesState).add_node("model", lambda _: {"messages": [calling("quick", "endless")]})
    graph: Any = builder.add_node("tools", cut).add_edge(START, "model").add_edge("model", "tools").compile(saver)
    with pytest.raises(Cut):
        graph.invoke({"messages": [HumanMessage("Go")]}, THREAD)


def require_that_another_process_can_go_on(saver: Any) -> None:
    """Repair a thread with an agent made anew over the store, and send the next message."""
    model = scripted(AIMessage("The end."))
    graph: Any = create_agent(model, two_tools(asyncio.Event()), checkpointer=saver)
    assert dl.repair(graph, THREAD).calls_cut == ("quick", "endless")
    graph.invoke({"messages": [HumanMessage("And now?")]}, THREAD)
    assert told(model.asked[-1]) == {"quick": CUT_RESULT, "endless": CUT_RESULT}
    assert [message.type for message in model.asked[-1]] == ["human", "ai", "tool", "tool", "human"]


@pytest.mark.parametrize("name", ["sqlite", "postgres"])
def test_a_thread_in_a_store_is_repaired_by_another_process(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if name == "postgres":
        request.getfixturevalue("postgres_server")
    opened = getattr(load_script(ROOT / "examples/crash/savers.py"), name)
    for step in (leave_open_calls, require_that_another_process_can_go_on):
        saver = opened(tmp_path)
        step(saver)
        saver.conn.close()


# ---- graphs and threads of every kind


def test_a_graph_without_a_checkpointer_has_its_state_mend() -> None:
    async def study() -> None:
        reached = asyncio.Event()
        builder = StateGraph(MessagesState).add_node("model", lambda _: {"messages": [calling("quick", "endless")]})
        builder.add_node("tools", ToolNode(two_tools(reached))).add_edge(START, "model").add_edge("model", "tools")
        result = await dl.enforce(builder.compile(), 60, "C").ainvoke({"messages": []}, cancel=reached.wait())
        before = list(result.state["messages"])
        done = result.repair()
        # One tool had returned in the node that was cut.
        assert told(done.state["messages"]) == {"quick": ("done", "success"), "endless": CUT_RESULT}
        assert result.state["messages"] == before

    asyncio.run(study())


def waiting_graph() -> Any:
    def approve(state: MessagesState) -> Any:
        return {"messages": [ToolMessage(str(interrupt("May I?")), tool_call_id="call-quick", name="quick")]}

    builder = StateGraph(MessagesState).add_node("model", lambda _: {"messages": [calling("quick")]})
    builder.add_node("approve", approve).add_edge(START, "model").add_edge("model", "approve")
    return builder.compile(InMemorySaver())


def test_a_thread_that_waits_for_a_person_is_left_as_it_is() -> None:
    graph = waiting_graph()
    result = dl.enforce(graph, 60, "A").invoke({"messages": [HumanMessage("Go")]}, THREAD)
    done = result.repair()
    assert (result.outcome, done.waits, done.calls_cut) == ("interrupted", True, ())
    assert repr(done) == "Repair: left as it is, since it waits for a person"
    assert told(graph.invoke(Command(resume="yes"), THREAD)["messages"]) == {"quick": ("yes", "success")}


def test_a_wait_for_a_person_is_dropped_where_that_is_asked_for() -> None:
    graph = waiting_graph()
    graph.invoke({"messages": [HumanMessage("Go")]}, THREAD)
    assert dl.repair(graph, THREAD, drops_interrupts=True).calls_cut == ("quick",)
    assert not graph.get_state(THREAD).interrupts


def test_a_thread_that_was_broken_before_is_mended_in_its_middle_and_begins_anew() -> None:
    model = scripted(AIMessage("The end."))
    graph: Any = create_agent(model, two_tools(asyncio.Event()), checkpointer=InMemorySaver())
    orphan = ToolMessage("lost", tool_call_id="nobody", name="quick")
    said = [HumanMessage("Go"), calling("endless"), HumanMessage("And now?"), orphan]
    graph.update_state(THREAD, {"messages": said}, as_node="__start__")
    assert dl.repair(graph, THREAD).calls_cut == ("endless",)
    graph.invoke(None, THREAD)
    assert [message.type for message in model.asked[-1]] == ["human", "ai", "tool", "human"]


class Plain(TypedDict, total=False):
    talk: list[AnyMessage]


def test_a_thread_that_had_ended_has_nothing_to_run_and_any_key_and_reducer_will_do() -> None:
    builder = StateGraph(Plain).add_node("model", lambda _: {"talk": [HumanMessage("Go"), calling("quick")]})
    graph: Any = builder.add_edge(START, "model").compile(InMemorySaver())
    graph.invoke({"talk": []}, THREAD)
    assert told(dl.repair(graph, THREAD).state["talk"]) == {"quick": CUT_RESULT}
    assert graph.get_state(THREAD).next == ()


def test_the_latest_checkpoint_is_mended_wherever_the_run_had_begun() -> None:
    saver = InMemorySaver()
    leave_open_calls(saver)
    graph: Any = create_agent(scripted(), two_tools(asyncio.Event()), checkpointer=saver)
    earliest = list(graph.get_state_history(THREAD))[-1].config
    assert dl.repair(graph, earliest).calls_cut == ("quick", "endless")


def test_what_cannot_be_repaired_is_refused_with_the_remedy() -> None:
    builder = StateGraph(MessagesState).add_node("model", lambda _: {"messages": [calling("quick")]})
    builder.add_edge(START, "model")
    with pytest.raises(ConfigurationError, match=r"no checkpointer, .* compile\(checkpointer=\.\.\.\)"):
        dl.repair(builder.compile(), THREAD)
    with pytest.raises(ConfigurationError, match="config names no thread"):
        dl.repair(builder.compile(InMemorySaver()), {})

    class Stubborn(TypedDict):
        messages: Annotated[list[AnyMessage], lambda before, after: [*before, calling("quick")]]

    class Narrow(TypedDict):
        question: str

    narrow = StateGraph(Stubborn, input_schema=Narrow).add_node("model", lambda _: {"messages": []})
    graph: Any = narrow.add_edge(START, "model").compile(InMemorySaver())
    graph.invoke({"question": "?"}, THREAD)
    with pytest.raises(GraphError, match="the graph does not take the mended messages"):
        dl.repair(graph, THREAD)


# ---- conversations


def test_a_result_of_the_tool_comes_before_one_that_says_that_it_was_cut_and_later_ones_go() -> None:
    cut, real, second = (
        ToolMessage(words, tool_call_id="call-quick", status=status)  # type: ignore[arg-type]
        for words, status in ((WAS_CUT, "error"), ("done", "success"), ("done again", "success"))
    )
    messages, names = mend([calling("quick"), cut, HumanMessage("Hm"), real, second])
    assert ([message.text for message in messages], names) == (["", "done", "Hm"], ())
    # What stands before a call is no result of it.
    messages, names = mend([real, calling("quick")])
    assert ([message.type for message in messages], told(messages)) == (["ai", "tool"], {"quick": CUT_RESULT})


def test_a_call_whose_arguments_are_no_json_has_a_result_too() -> None:
    broken = {"name": "quick", "args": '{"te', "id": "call-1", "error": None, "type": "invalid_tool_call"}
    assert told(mend([AIMessage("", invalid_tool_calls=[broken])])[0]) == {"quick": CUT_RESULT}


call_ids = st.sampled_from(["1", "2", "3"])
message_lists = st.lists(
    st.one_of(
        st.just(HumanMessage("Hm")),
        st.lists(call_ids, max_size=3, unique=True).map(
            lambda ids: AIMessage("So", tool_calls=[{"name": "quick", "args": {}, "id": each} for each in ids])
        ),
        call_ids.map(lambda each: ToolMessage("done", tool_call_id=each)),
    ),
    max_size=9,
)


@given(message_lists)
def test_every_conversation_is_mended_into_one_that_providers_take(messages: list[BaseMessage]) -> None:
    messages = [message.model_copy() for message in messages]
    taken, _ = mend(messages)
    payload = {"messages": json.loads(json.dumps(convert_to_openai_messages(taken)))}
    assert refusal_of(payload, "openai_chat") is None
    others = [message for message in messages if not isinstance(message, ToolMessage)]
    assert [message for message in taken if not isinstance(message, ToolMessage)] == others
    assert is_same(mend(taken)[0], taken)
    # What providers take is left as it is.
    whole = {"messages": json.loads(json.dumps(convert_to_openai_messages(messages)))}
    assert is_same(taken, messages) == (refusal_of(whole, "openai_chat") is None)


# ---- the crash test


@pytest.mark.parametrize(
    ("case", "alternative", "at_s", "options"),
    often(
        [
            ("agent", "D", 0.001, {}),
            ("react_agent_v1", "D", 0.001, {}),
            ("react_agent", "D", 0.001, {"checkpointer": f"{ROOT}/examples/crash/savers.py:sqlite"}),
            ("react_agent", "C", 1.9, {"checkpointer": f"{ROOT}/examples/crash/savers.py:async_sqlite"}),
            ("deep_agent", "C", 4.275962976, {}),
            ("agent", "kill", 1.95, {}),
        ],
        ("agent", "D", 0.001, {}),
        ("react_agent", "C", 1.9, {"checkpointer": f"{ROOT}/examples/crash/savers.py:async_sqlite"}),
    ),
)
def test_a_finding_of_a_thread_that_cannot_go_on_is_gone_once_it_is_repaired(
    case: str, alternative: str, at_s: float, options: Any
) -> None:
    graph = f"{ROOT}/examples/crash/{case}.py:graph"
    with pytest.raises(AssertionError):
        cut_at(graph, QUESTION, alternative, at_s, **options)
    observation = cut_at(graph, QUESTION, alternative, at_s, repair=True, **options)
    assert observation.last.calls_cut
    assert observation.asked is not None
    assert observation.asked.outcome == "answered"


def test_the_crash_test_prints_the_remedy_and_has_tried_it() -> None:
    system = dl.graph(f"{ROOT}/examples/crash/agent.py:graph", [QUESTION])
    report = dl.crash_test(system, alternatives="D", runs=6, workers=1)
    (finding,) = report.findings
    assert finding.remedy.endswith("tried on this trial, every invariant holds with it")
    assert f"Remedy: {finding.remedy}" in str(report).replace("\n", " ")
    assert dl.crash_test(system, alternatives="D", runs=6, workers=1, repair=True).holds
