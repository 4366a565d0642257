"""`enforce`: a user's graph under a measured alternative, on the caller's own loop (enforce.md 1, 2 and 4)."""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import httpx
import pytest
from held_graphs import Notes, async_graph, in_a_row, sync_graph, two_nodes, upstream_of, wait_until
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from stub_server import StubServer

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.holds import current_hold

Stub = Callable[..., StubServer]
ALTERNATIVES = ("unguarded", "A", "B", "C", "D", "E", "F", "A:per_read", "B:drain", "C:propagate", "F:per_step")
# A machine of two shared cores pauses for this long at most, give or take what a test can allow itself.
PAUSE_S = 0.5


def graph_of(kind: str, url: str, **compiled: Any) -> Any:
    return (async_graph if kind == "async" else sync_graph)(url, **compiled)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_an_undisturbed_run_gives_what_the_graph_gives(alternative: str, kind: str, stub: Stub) -> None:
    _, url = upstream_of(stub)
    graph = graph_of(kind, url)
    agent = dl.enforce(graph, 20, alternative)
    given: Notes = {"path": "/ok", "log": ["begin"]}
    result = asyncio.run(agent.ainvoke(given))
    assert result.state == asyncio.run(graph.ainvoke(given))
    assert (result.outcome, result.stop_reason, result.cut_at, result.error) == ("answered", "", (), None)
    assert (result.overrun_s, result.still_running, result.requests_cut) == (0.0, (), 0)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_an_error_of_the_graph_is_raised_as_by_the_graph(alternative: str) -> None:
    async def plan(state: Notes) -> Notes:
        return {"log": ["plan"]}

    async def ask(state: Notes) -> Notes:
        raise KeyError("mine")

    agent = dl.enforce(two_nodes(plan, ask), 20, alternative)
    with pytest.raises(KeyError, match="mine"):
        asyncio.run(agent.ainvoke({"path": "", "log": []}))


def test_the_step_limit_of_a_graph_is_its_own() -> None:
    async def plan(state: Notes) -> Notes:
        return {"log": []}

    agent = dl.enforce(two_nodes(plan, plan), 20, "E")
    with pytest.raises(GraphRecursionError):
        asyncio.run(agent.ainvoke({"path": "", "log": []}, {"recursion_limit": 1}))


class Approval(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def approving_graph() -> Any:
    async def draft(state: Approval) -> Approval:
        return {"log": ["draft"]}

    async def approve(state: Approval) -> Approval:
        return {"log": [interrupt("may I?")]}

    return in_a_row(Approval, {"draft": draft, "approve": approve}, checkpointer=InMemorySaver())


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_an_interrupted_graph_waits_for_a_person_and_is_resumed(alternative: str) -> None:
    agent = dl.enforce(approving_graph(), 20, alternative)
    config: Any = {"configurable": {"thread_id": "t"}}
    waiting = asyncio.run(agent.ainvoke({"log": []}, config))
    assert (waiting.outcome, waiting.interrupts[0].value) == ("interrupted", "may I?")
    assert asyncio.run(agent.aget_state(config)).next == ("approve",)
    resumed = asyncio.run(agent.ainvoke(Command(resume="yes"), config))
    assert (resumed.outcome, resumed.state) == ("answered", {"log": ["draft", "yes"]})


def asking_side_by_side() -> Any:
    """Three branches of one step; each asks a person for its own name."""

    async def ask(state: dict[str, str]) -> Approval:
        return {"log": [f"{state['name']}: {interrupt(state['name'])}"]}

    builder = StateGraph(Approval)
    builder.add_node("ask", ask)  # type: ignore[type-var]
    builder.add_conditional_edges(START, lambda _: [Send("ask", {"name": name}) for name in "abc"], ["ask"])
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("version", ["", "v1", "v2"])
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_every_interrupt_of_a_step_is_in_the_result_until_it_is_answered(alternative: str, version: str) -> None:
    agent = dl.enforce(asking_side_by_side(), 20, alternative)
    config: Any = {"configurable": {"thread_id": "t"}}

    async def call(given: Any) -> Any:
        if not version:
            return await agent.ainvoke(given, config)
        stream = agent.astream(given, config, version=version)  # type: ignore[arg-type]
        async for _ in stream:
            pass
        return stream.result

    async def answer_one_then_the_others() -> list[Any]:
        first = await call({"log": []})
        by_name = {each.value: each.id for each in first.interrupts}
        second = await call(Command(resume={by_name["b"]: "yes"}))
        third = await call(Command(resume={each.id: "no" for each in second.interrupts}))
        return [first, second, third]

    first, second, third = asyncio.run(answer_one_then_the_others())
    assert (first.outcome, sorted(each.value for each in first.interrupts)) == ("interrupted", ["a", "b", "c"])
    assert (second.outcome, sorted(each.value for each in second.interrupts)) == ("interrupted", ["a", "c"])
    assert (third.outcome, third.interrupts, third.state["log"]) == ("answered", (), ["a: no", "b: yes", "c: no"])


@pytest.mark.parametrize("alternative", ["A", "C", "E"])
def test_a_conversation_keeps_its_thread_and_its_checkpoints(alternative: str, stub: Stub) -> None:
    _, url = upstream_of(stub)
    config: Any = {"configurable": {"thread_id": "t"}}

    def talk(saver: InMemorySaver, ask: Callable[[Any, Any], Any]) -> list[Any]:
        for _ in range(2):
            asyncio.run(ask({"path": "/ok", "log": ["question"]}, config))
        return [(found.metadata, found.checkpoint["channel_values"]) for found in saver.list(config)]

    bare, enforced = InMemorySaver(), InMemorySaver()
    graph = async_graph(url, checkpointer=bare)
    agent = dl.enforce(async_graph(url, checkpointer=enforced), 20, alternative)
    assert talk(enforced, agent.ainvoke) == talk(bare, graph.ainvoke)
    assert agent.get_state(config).values["log"] == ["question", "plan", "ok"] * 2


# ---- streams


def streaming_graph() -> Any:
    """A graph with a graph inside, a model and a writer, so that each stream mode has something to show."""

    async def think(state: MessagesState) -> Any:
        model = GenericFakeChatModel(messages=iter([AIMessage("one two")]))
        return {"messages": [await model.ainvoke(state["messages"])]}

    async def note(state: MessagesState) -> Any:
        get_stream_writer()({"progress": 1})
        return {"messages": [AIMessage("noted", id="noted")]}

    inner = in_a_row(MessagesState, {"think": think})
    return in_a_row(MessagesState, {"note": note, "inner": inner}, checkpointer=InMemorySaver())


def plain(value: Any) -> Any:
    """A chunk without what differs from run to run: ids, instants and addresses."""
    if isinstance(value, dict):
        dropped = ("id", "timestamp", "created_at", "checkpoint", "parent_config", "config", "checkpoint_ns")
        hidden = ("langgraph_checkpoint_ns", "checkpoint_id", "run_id")
        return {key: plain(item) for key, item in value.items() if key not in (*dropped, *hidden)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return value.partition(":")[0]
    return (type(value).__name__, value.content) if hasattr(value, "content") else value


STREAMS: list[dict[str, Any]] = [
    {},
    *({"stream_mode": mode} for mode in ("values", "updates", "messages", "custom", "checkpoints", "tasks", "debug")),
    {"stream_mode": ["values", "messages"]},
    {"stream_mode": ["updates"], "subgraphs": True},
    {"stream_mode": "values", "subgraphs": True},
    {"stream_mode": ["values", "custom", "messages"], "version": "v2"},
    {"stream_mode": "updates", "version": "v2", "subgraphs": True},
]


@pytest.mark.parametrize("alternative", ["A", "C", "E", "F", "B", "D"])
@pytest.mark.parametrize("options", STREAMS, ids=str)
def test_a_stream_has_the_chunks_of_the_graphs_own(options: dict[str, Any], alternative: str) -> None:
    given: Any = {"messages": [HumanMessage("hello", id="hello")]}
    config: Any = {"configurable": {"thread_id": "t"}}

    async def chunks(source: Any) -> list[Any]:
        return [plain(chunk) async for chunk in source.astream(given, config, **options)]

    agent = dl.enforce(streaming_graph(), 20, alternative)
    bare = asyncio.run(chunks(streaming_graph()))
    assert asyncio.run(chunks(agent)) == bare
    assert asyncio.run(chunks(dl.enforce(streaming_graph(), 20, alternative).as_graph())) == bare


def test_events_are_those_of_the_graph() -> None:
    given: Any = {"messages": [HumanMessage("hello", id="hello")]}
    config: Any = {"configurable": {"thread_id": "t"}}

    async def names(graph: Any) -> list[Any]:
        return [(event["event"], event["name"]) async for event in graph.astream_events(given, config)]

    bare = asyncio.run(names(streaming_graph()))
    enforced = asyncio.run(names(dl.enforce(streaming_graph(), 20, "E").as_graph()))
    assert [event for event in enforced if event[1] != "EnforcedCompiledStateGraph"] != []
    renamed = [(event, name.replace("Enforced", "")) for event, name in enforced]
    assert set(bare) <= set(renamed)


@pytest.mark.wall
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("way", ["task", "event"])
def test_a_caller_that_leaves_takes_its_requests_with_it(way: str, kind: str, stub: Stub) -> None:
    upstream, url = upstream_of(stub)
    agent = dl.enforce(graph_of(kind, url), 20, "E")
    given: Notes = {"path": "/hang", "log": []}

    async def leave() -> float:
        left = asyncio.Event()
        task = asyncio.create_task(agent.ainvoke(given, cancel=left.wait() if way == "event" else None))
        await asyncio.to_thread(wait_until, lambda: upstream.open == 1)
        begun_at = time.monotonic()
        if way == "event":
            left.set()
            result = await task
            assert (result.outcome, result.stop_reason) == ("partial", "caller_left")
            assert result.state == {"path": "/hang", "log": ["plan"]}
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return begun_at

    left_at = asyncio.run(leave())
    wait_until(lambda: upstream.open == 0)
    assert upstream.left_at[0] - left_at < 0.1 + PAUSE_S


def test_sync_streams_have_the_graphs_chunks_and_a_result(stub: Stub) -> None:
    _, url = upstream_of(stub)
    for alternative in ("A", "B", "D"):
        stream = dl.enforce(sync_graph(url), 20, alternative).stream({"path": "/ok", "log": []}, stream_mode="updates")
        assert list(stream) == [{"plan": {"log": ["plan"]}}, {"ask": {"log": ["ok"]}}]
        assert stream.result.outcome == "answered"


def test_batches_have_a_result_for_each_input(stub: Stub) -> None:
    _, url = upstream_of(stub)
    inputs: list[Notes] = [{"path": "/ok", "log": [str(number)]} for number in range(3)]
    agent = dl.enforce(sync_graph(url), 20, "A")
    states = [["0", "plan", "ok"], ["1", "plan", "ok"], ["2", "plan", "ok"]]
    assert [result.state["log"] for result in agent.batch(inputs)] == states
    assert [result.state["log"] for result in asyncio.run(agent.abatch(inputs))] == states
    assert agent.batch([]) == []
    with pytest.raises(ConfigurationError, match="config: 1 for 3 inputs"):
        agent.batch(inputs, [{}])


# ---- as part of others


def test_an_enforced_graph_is_a_node_of_another_graph(stub: Stub) -> None:
    _, url = upstream_of(stub)
    inner = dl.enforce(async_graph(url), 20, "E").as_graph()
    given: Notes = {"path": "/ok", "log": []}
    assert asyncio.run(in_a_row(Notes, {"inner": inner}).ainvoke(given)) == {"path": "/ok", "log": ["plan", "ok"]}


# The client keeps connections of loops that are closed, as any does that is used on several.
@pytest.mark.filterwarnings("ignore:unclosed transport:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_may_be_used_on_another_loop_before_and_after(stub: Stub) -> None:
    _, url = upstream_of(stub)
    client = httpx.AsyncClient(timeout=None)
    agent = dl.enforce(async_graph(url, client), 20, "E")
    given: Notes = {"path": "/ok", "log": []}
    for _ in range(2):
        assert asyncio.run(agent.ainvoke(given)).outcome == "answered"
        assert agent.invoke(given).outcome == "answered"
    del agent, client
    gc.collect()


def test_the_context_of_the_caller_is_clean_after_a_call(stub: Stub) -> None:
    _, url = upstream_of(stub)

    async def call() -> None:
        agent = dl.enforce(async_graph(url), 20, "E")
        await agent.ainvoke({"path": "/ok", "log": []})
        async for _ in agent.astream({"path": "/ok", "log": []}):
            pass
        assert current_hold() is None
        assert dl.remaining_s() is None

    asyncio.run(call())


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"graph": StateGraph(Notes)}, "graph is a StateGraph, not a compiled graph; call .compile()"),
        ({"decision_timeout_s": 0}, "decision_timeout_s must be a finite number of seconds above 0"),
        ({"alternative": "G"}, "unknown alternative 'G'"),
        ({"alternative": "A,B"}, "unknown alternative 'A,B'"),
        ({"alternative": "A:equal"}, "unknown variant 'A:equal'; the variants are cooperative:per_read"),
        ({"on_deadline": "explode"}, "on_deadline must be 'partial' or 'raise'"),
        ({"alternative": None}, "alternative must name one, not None; try 'E'"),
        ({"limits": 5}, "limits is 5, not a Limits; try dl.Limits(total_s=60)"),
        ({"wrap_up": 5}, "wrap_up is 5, not a WrapUp; try dl.WrapUp(8)"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(values: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"graph": approving_graph(), **values}
    with pytest.raises(ConfigurationError) as refused:
        dl.enforce(**options)
    assert message in str(refused.value)


# ---- on_result: every call, once


class Waiting(TypedDict, total=False):
    waits_s: float


@pytest.mark.parametrize("alternative", ["A", "D"])
def test_on_result_gets_a_sync_stream_that_is_closed_half_way_in_the_readers_thread(alternative: str) -> None:
    go_on, results = threading.Event(), list[tuple[str, str, str]]()
    waits = {"first": lambda state: {}, "work": lambda state: {"waits_s": float(go_on.wait(20))}}
    graph = in_a_row(Waiting, waits)
    agent = dl.enforce(
        graph,
        30,
        alternative,
        on_result=lambda result: results.append((result.outcome, result.stop_reason, threading.current_thread().name)),
    )
    stream = agent.stream({"waits_s": 0}, stream_mode="updates")
    next(stream)
    stream.close()
    go_on.set()
    wait_until(lambda: not any(each.name == "docmind-stream" for each in threading.enumerate()))
    assert results == [("partial", "caller_left", threading.current_thread().name)]


def test_an_interrupt_inside_an_enforced_node_reaches_the_outer_graph_and_on_result() -> None:
    results: list[tuple[str, int]] = []
    inner = dl.enforce(
        approving_graph(), 20, "E", on_result=lambda result: results.append((result.outcome, len(result.interrupts)))
    ).as_graph()
    outer = in_a_row(Approval, {"inner": inner}, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    waiting = asyncio.run(outer.ainvoke({"log": []}, config))
    assert waiting["__interrupt__"][0].value == "may I?"
    assert asyncio.run(outer.ainvoke(Command(resume="yes"), config))["log"] == ["draft", "yes"]
    assert results == [("interrupted", 1), ("answered", 0)]
