"""How a call of an enforced graph ends, in virtual time: its result, its chunks, and what `on_result` gets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import httpx2
import pytest
from held_graphs import Notes, in_a_row
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from service_doors import HERE, MODEL, QUESTION, Virtual

import docmind_lab as dl
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.alternatives.bound import bound
from docmind_lab.alternatives.enforcement.transport import transport
from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.core.errors import DeadlineExceeded, RunCut
from docmind_lab.core.holds import current_hold
from docmind_lab.virtual_time import VirtualClock

THREAD: Any = {"configurable": {"thread_id": "t"}}
# Seconds that a call is late: those that asyncio's own cancellation is given before E's.
SLACK_S = 0.05
CUTS = {
    "B": ("hard_timeout", 0.0),
    "B:drain": ("hard_timeout", 0.0),
    "C": ("cancelled", 0.0),
    "E": ("step_timeout", SLACK_S),
    "F": ("node_timeout", 0.0),
    "F:per_step": ("step_timeout", 0.0),
}


class Waits(Notes, total=False):
    waits_s: float


GIVEN: Waits = {"log": [], "waits_s": 20.0}
CUT: Waits = {"log": ["plan"], "waits_s": 20.0}


async def plan(state: Waits) -> Waits:
    return {"log": ["plan"]}


async def ask(state: Waits) -> Waits:
    if state["waits_s"] < 0:
        raise ValueError("no")
    await asyncio.sleep(state["waits_s"])
    return {"log": ["asked"]}


def ask_in_a_thread(state: Waits) -> Waits:
    time.sleep(state["waits_s"])
    return {"log": ["asked"]}


def waiting(second: Any = ask, **compiled: Any) -> Any:
    """A graph whose second node waits for as long as its input says, and asks nobody."""
    return in_a_row(Waits, {"plan": plan, "ask": second}, **compiled)


def side_by_side(**nodes: Any) -> Any:
    """A graph whose nodes are all in one step."""
    builder = StateGraph(Waits)
    for name, node in nodes.items():
        builder.add_node(name, node).add_edge(START, name)
    return builder.compile(checkpointer=InMemorySaver())


def virtually(main: Callable[[], Awaitable[Any]]) -> Any:
    """What a coroutine function returns in virtual time."""
    return VirtualClock().run_async(main)


def called(graph: Any, limit_s: float = 2.0, alternative: str = "E", **options: Any) -> Any:
    """The result of one call, in virtual time."""
    agent = dl.enforce(graph, limit_s, alternative)
    return virtually(lambda: agent.ainvoke(GIVEN, THREAD, **options))


# ---- the result


@pytest.mark.parametrize("second", [ask, ask_in_a_thread])
@pytest.mark.parametrize("alternative", CUTS)
def test_a_cut_call_says_when_where_and_why_it_was_cut_and_what_goes_on(alternative: str, second: Any) -> None:
    reason, late_s = CUTS[alternative]
    result = called(waiting(second), alternative=alternative)
    assert (result.outcome, result.state, result.was_cut) == ("partial", CUT, True)
    assert (result.stop_reason, result.cut_at) == (reason, ("ask",))
    # No cancellation ends a thread.
    assert result.still_running == (("ask",) if second is ask_in_a_thread else ())
    assert (result.limit_s, result.remaining_at_start_s, result.requests_cut) == (2.0, 2.0, 0)
    assert (result.elapsed_s, result.overrun_s) == pytest.approx((2.0 + late_s, late_s))
    (made,) = parse_alternatives([alternative])
    assert (result.alternative, result.alternative_options) == (made.name, options_json(made))


@pytest.mark.parametrize("alternative", ["unguarded", "A", "D"])
def test_an_alternative_that_cuts_no_node_has_its_answer_late(alternative: str) -> None:
    result = called(waiting(), alternative=alternative)
    assert (result.outcome, result.stop_reason, result.cut_at, result.error) == ("answered", "", (), None)
    assert (result.elapsed_s, result.overrun_s) == (20.0, 18.0)
    assert ("and enforces" in repr(dl.enforce(waiting(), 2.0, alternative))) == (alternative == "unguarded")


def test_a_call_that_is_cut_before_any_node_has_finished_has_timed_out() -> None:
    result = called(in_a_row(Waits, {"ask": ask}))
    assert (result.outcome, result.state, result.cut_at) == ("timed_out", GIVEN, ("ask",))


def test_a_call_that_waits_for_a_person_is_interrupted_though_another_node_was_cut() -> None:
    async def person(state: Waits) -> Waits:
        return {"log": [interrupt("may I?")]}

    result = called(side_by_side(person=person, ask=ask))
    assert (result.outcome, result.stop_reason, result.cut_at, result.was_cut) == ("interrupted", "", (), False)
    assert [each.value for each in result.interrupts] == ["may I?"]


async def hide_its_cut(state: Waits) -> Waits:
    await asyncio.sleep(3.0)
    hold = current_hold()
    assert hold is not None
    hold.cut()
    raise ValueError("an error of its own, as of code that catches everything")


async def refuse(state: Waits) -> Waits:
    raise Deadline.after(1.0).refused("mine", "node")


def test_an_error_after_a_request_was_cut_is_the_cut_and_one_in_time_is_the_graphs() -> None:
    result = called(waiting(hide_its_cut), 2.0, "A")
    assert (result.outcome, result.stop_reason, result.cut_at) == ("partial", "deadline", ("ask",))
    assert (result.requests_cut, str(result.error)[:8], result.state) == (1, "an error", CUT)
    with pytest.raises(ValueError, match="an error of its own"):
        called(waiting(hide_its_cut), 5.0, "A")


@pytest.mark.parametrize("alternative", ["A", "E"])
@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("web", [httpx, httpx2])
@pytest.mark.parametrize("held", [None, transport], ids=["hooks", "transport"])
def test_a_request_that_hangs_is_cut_at_the_deadline(held: Any, web: Any, blocks: bool, alternative: str) -> None:
    client: dict[str, Any] = {"timeout": None, "trust_env": False, "base_url": HERE.openai_base_url}
    request = ("/chat/completions", {"model": MODEL, "messages": QUESTION})

    async def send(state: Waits) -> Waits:
        async with web.AsyncClient(transport=held and held(), **client) as own:
            return {"log": [(await own.post(request[0], json=request[1])).text]}

    def send_blocking(state: Waits) -> Waits:
        with web.Client(transport=held and held(), **client) as own:
            return {"log": [own.post(request[0], json=request[1]).text]}

    agent = dl.enforce(waiting(send_blocking if blocks else send), 2.0, alternative)
    result = Virtual.of("hang:*").run(lambda: asyncio.run(agent.ainvoke(GIVEN)))
    assert (result.outcome, result.stop_reason, result.state) == ("partial", "deadline", CUT)
    assert (result.elapsed_s, result.requests_cut, result.cut_at) == (2.0, 1, ("ask",))


def test_a_deadline_without_a_hold_cuts_a_request_of_a_held_transport() -> None:
    def send() -> None:
        with deadline_scope(Deadline.after(2.0)), httpx.Client(transport=transport(), timeout=None) as own:
            own.post(f"{HERE.openai_base_url}/chat/completions", json={"model": MODEL, "messages": QUESTION})

    virtual = Virtual.of("hang:*")
    with pytest.raises(RunCut) as cut:
        virtual.run(send)
    assert (virtual.took_s, cut.value.error.stop_reason) == (2.0, "deadline")


def test_a_budget_that_the_graph_raises_is_a_cut() -> None:
    result = called(waiting(refuse))
    assert (result.outcome, result.stop_reason, result.cut_at) == ("partial", "budget_refused", ("ask",))


def test_an_agent_may_raise_on_its_deadline_with_the_result() -> None:
    agent = dl.enforce(waiting(), 2.0, "E", on_deadline="raise")
    with pytest.raises(TimeoutError, match=r"cut the graph in ask, 2\.050 s into a limit of 2\.000 s") as cut:
        virtually(lambda: agent.ainvoke(GIVEN))
    assert isinstance(cut.value, dl.CallCut)
    assert cut.value.result.state == CUT


def test_a_node_that_waited_for_a_thread_does_not_begin_after_the_deadline() -> None:
    begun: list[str] = []

    def begin(state: Waits) -> Waits:
        begun.append("begin")
        time.sleep(5.0)
        return {}

    async def many() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        agent = dl.enforce(in_a_row(Waits, {"begin": begin}), 2.0, "E")
        results = await asyncio.gather(*(agent.ainvoke(GIVEN) for _ in range(3)))
        assert [result.outcome for result in results] == ["timed_out"] * 3
        await asyncio.to_thread(lambda: None)

    virtually(many)
    assert begun == ["begin"]


# ---- which deadline


def test_the_nearer_of_two_deadlines_applies() -> None:
    inner = dl.enforce(waiting(), 20.0, "E")

    async def outer_node(state: Waits) -> Waits:
        await asyncio.sleep(0.5)
        return {"log": [(await inner.ainvoke(GIVEN)).outcome]}

    assert called(waiting(outer_node)).elapsed_s == pytest.approx(2.0 + SLACK_S)

    async def in_a_block(around_s: float, inside_s: float) -> Any:
        async with dl.deadline(around_s):
            return await inner.with_deadline(inside_s).ainvoke(GIVEN)

    result = virtually(lambda: in_a_block(20.0, 2.0))
    assert (result.outcome, result.limit_s) == ("partial", 2.0)
    # The block is cancelled 0.01 s after its deadline, and the call inside is cut before.
    with pytest.raises(DeadlineExceeded):
        virtually(lambda: in_a_block(1.0, 2.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda agent: agent.ainvoke(GIVEN, {"configurable": {"decision_timeout_s": 1.0}}),
        lambda agent: agent.ainvoke(GIVEN, deadline=1.0),
        lambda agent: agent.ainvoke(GIVEN, deadline=dl.Deadline.after(1.0)),
        lambda agent: agent.with_deadline(1.0).ainvoke(GIVEN),
    ],
)
def test_each_call_may_have_a_timeout_of_its_own(call: Callable[[Any], Awaitable[Any]]) -> None:
    result = virtually(lambda: call(dl.enforce(waiting(), 20.0, "C")))
    assert (result.limit_s, result.elapsed_s) == (1.0, 1.0)


def test_a_cut_run_writes_no_checkpoint_after_its_caller_has_left() -> None:
    saver = InMemorySaver()

    async def run() -> tuple[Any, Any]:
        result = await dl.enforce(waiting(ask_in_a_thread, checkpointer=saver), 2.0, "E").ainvoke(GIVEN, THREAD)
        assert result.still_running == ("ask",)
        at_return = saver.get_tuple(THREAD)
        await asyncio.sleep(30.0)
        return at_return, saver.get_tuple(THREAD)

    before, after = virtually(run)
    assert before is not None
    assert before == after


# ---- streams


async def quick(state: Waits) -> Waits:
    return {"log": ["quick"]}


FIRST, LAST = GIVEN, {"log": ["quick"], "waits_s": 20.0}


@pytest.mark.parametrize("alternative", ["C", "E", "F"])
@pytest.mark.parametrize(
    ("options", "chunks"),
    [
        ({"stream_mode": "values"}, [FIRST, LAST]),
        ({"stream_mode": ["values", "tasks"]}, [("values", FIRST), ("values", LAST)]),
        ({"stream_mode": "values", "subgraphs": True}, [((), FIRST), ((), LAST)]),
        ({"stream_mode": ["values"], "subgraphs": True}, [((), "values", FIRST), ((), "values", LAST)]),
        ({"stream_mode": "updates"}, [{"quick": {"log": ["quick"]}}]),
        ({"stream_mode": "messages"}, []),
    ],
    ids=str,
)
def test_a_cut_stream_ends_with_the_state_that_its_result_has(
    options: dict[str, Any], chunks: list[Any], alternative: str
) -> None:
    async def read() -> tuple[list[Any], Any]:
        agent = dl.enforce(side_by_side(quick=quick, ask=ask), 2.0, alternative)
        stream = agent.astream(GIVEN, THREAD, **options)
        with pytest.raises(RuntimeError, match="no result yet"):
            _ = stream.result
        return [chunk async for chunk in stream if "tasks" not in chunk], stream.result

    seen, result = virtually(read)
    assert (result.outcome, result.state, result.cut_at) == ("partial", LAST, ("ask",))
    assert seen == chunks


def test_a_reader_of_values_sees_no_state_twice() -> None:
    async def read() -> list[Any]:
        return [chunk async for chunk in dl.enforce(waiting(), 2.0, "C").astream(GIVEN, stream_mode="values")]

    assert virtually(read) == [GIVEN, CUT]


def test_a_deadline_that_passes_while_the_reader_is_busy_cancels_the_run_and_not_the_reader() -> None:
    async def read() -> tuple[Any, float]:
        stream = dl.enforce(waiting(), 2.0, "C").astream(GIVEN, stream_mode="updates")
        async for _ in stream:
            await asyncio.sleep(4.0)
        return stream.result, time.monotonic()

    result, ended_at_s = virtually(read)
    assert (result.outcome, result.state, ended_at_s) == ("partial", CUT, 4.0)


# ---- as a graph


def test_no_cut_leaks_from_events_or_from_the_graph() -> None:
    async def read() -> None:
        graph = dl.enforce(waiting(), 2.0, "E").as_graph()
        assert [event async for event in graph.astream_events(GIVEN)]
        assert await graph.ainvoke(GIVEN) == CUT
        with pytest.raises(dl.CallCut):
            await dl.enforce(waiting(), 2.0, "E", on_deadline="raise").as_graph().ainvoke(GIVEN)

    virtually(read)


SEEN: list[Any] = []


async def note_context(state: Waits, runtime: Runtime[Any]) -> Waits:
    SEEN.append(runtime.context)
    return {"log": ["plan"]}


def noting() -> Any:
    """A graph that notes its runtime context, and waits."""
    SEEN.clear()
    return in_a_row(Waits, {"plan": note_context, "ask": ask})


@pytest.mark.parametrize("alternative", ["A", "C", "E"])
@pytest.mark.parametrize("served", [True, False])
def test_the_context_of_a_call_reaches_its_nodes(served: bool, alternative: str) -> None:
    agent = dl.enforce(noting(), 30.0, alternative)
    called_on: Any = agent.as_graph() if served else agent
    virtually(lambda: called_on.ainvoke(GIVEN, context="mine"))
    assert SEEN == ["mine"]


def test_a_graph_that_is_enforced_is_measured_as_any_other() -> None:
    served = dl.enforce(waiting(), 2.0, "C").as_graph()
    study = dl.compare(dl.graph(served, [GIVEN]), 5.0, alternatives="unguarded,A", runs=1)
    assert study.runs["returned_at_s"].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("inside", [True, False], ids=["binding inside", "binding outside"])
@pytest.mark.parametrize(
    ("copied", "keeps_what_others_set"),
    [
        (lambda graph: graph, True),
        (lambda graph: graph.copy(), True),
        (lambda graph: graph.with_config({"tags": ["mine"]}), True),
        (lambda graph: graph.copy({"checkpointer": InMemorySaver()}), True),
        (lambda graph: graph.copy({"name": "mine"}), False),
    ],
    ids=["itself", "copy", "with_config", "checkpointer", "name"],
)
def test_every_copy_of_an_enforced_graph_is_enforced_and_runs_as_the_copy_says(
    copied: Callable[[Any], Any], keeps_what_others_set: bool, inside: bool
) -> None:
    if inside:
        graph = dl.enforce(bound(noting(), context="mine"), 2.0, "C").as_graph()
    else:
        graph = bound(dl.enforce(noting(), 2.0, "C").as_graph(), context="mine")
    graph.traced = True  # type: ignore[attr-defined]
    copy = copied(graph)
    # LangGraph's own copy goes by the constructor, which drops what a tracer has set.
    assert getattr(copy, "traced", False) is keeps_what_others_set
    assert virtually(lambda: copy.ainvoke(GIVEN, THREAD)) == CUT
    assert SEEN == ["mine"]
    if copy.checkpointer is not None:
        assert copy.get_state(THREAD).values == CUT


# ---- `on_result`: every call, once

LEFT = ("partial", "caller_left", ("ask",))
ANSWERED = ("answered", "", ())
# What the caller does, and what is recorded of it; of a cut, each alternative says its own reason.
CALLS: dict[str, tuple[Any, ...]] = {
    "answered": ANSWERED,
    "cut": ("partial", "", ("ask",)),
    "failed": ("failed", "error", ()),
    "cancelled": LEFT,
    "told to leave": LEFT,
    "closed": LEFT,
    "reader cancelled": LEFT,
    "read to its end": ANSWERED,
}


async def make_call(agent: dl.EnforcedAgent[Any, Any, Any, Any], kind: str) -> None:
    if kind in ("cancelled", "reader cancelled"):

        async def read() -> None:
            async for _ in agent.astream(GIVEN):
                pass

        running = agent.ainvoke(GIVEN) if kind == "cancelled" else read()
        task = asyncio.create_task(running)
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    elif kind == "told to leave":
        result = await agent.ainvoke(GIVEN, cancel=asyncio.sleep(1.0))
        assert (result.elapsed_s, result.state) == (1.0, CUT)
    elif kind == "closed":
        stream = agent.astream(GIVEN, stream_mode="updates")
        await anext(stream)
        await stream.aclose()
        assert stream.result.outcome == "partial"
    elif kind == "read to its end":
        async for _ in agent.astream(GIVEN | {"waits_s": 0.0}):
            pass
    elif kind == "failed":
        with pytest.raises(ValueError, match="no"):
            await agent.ainvoke(GIVEN | {"waits_s": -1.0})
    else:
        await agent.ainvoke(GIVEN if kind == "cut" else GIVEN | {"waits_s": 0.0})


@pytest.mark.parametrize("alternative", ["C", "E", "F"])
@pytest.mark.parametrize("kind", CALLS)
def test_on_result_gets_each_call_once_however_it_ends(kind: str, alternative: str) -> None:
    results: list[Any] = []

    def note(result: Any) -> None:
        results.append((result.outcome, result.stop_reason, result.cut_at))

    virtually(lambda: make_call(dl.enforce(waiting(), 2.0, alternative, on_result=note), kind))
    outcome, reason, cut_at = CALLS[kind]
    assert results == [(outcome, CUTS[alternative][0] if kind == "cut" else reason, cut_at)]
