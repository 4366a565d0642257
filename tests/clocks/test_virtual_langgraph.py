"""Spec 4, the stack: LangGraph and create_agent run unmodified in virtual time, on both kinds of stream.

That HTTP clients do is shown by whole runs (`tests/alternatives`), and by their pools on the virtual network.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from fan_out_program import AGENT_CONFIG, AGENT_INPUT, State, agent, by_cancellation, by_future, fan_out
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

from docmind_lab.virtual_time import VirtualClock

EXPECTED_STREAM = [("n1.0", 1), ("n2.0", 2), ("n3.0", 3), ("ask", 3), ("tools", 9)]


def test_a_sync_stream_with_fan_out_and_parallel_tools() -> None:
    graph, clock = fan_out(), VirtualClock()
    stream = clock.run(lambda: [(next(iter(u)), clock.now()) for u in graph.stream({}, stream_mode="updates")])
    assert stream == EXPECTED_STREAM


def test_an_async_stream_and_its_cancellation_by_a_timeout() -> None:
    graph, seen = fan_out(in_a_loop=True), []

    async def main(budget_s: float) -> None:
        async with asyncio.timeout(budget_s):
            async for update in graph.astream({}, stream_mode="updates"):
                seen.append((next(iter(update)), time.monotonic()))

    VirtualClock().run_async(main, 100)
    assert seen == EXPECTED_STREAM
    clock = VirtualClock()
    with pytest.raises(TimeoutError):
        clock.run_async(main, 2.5)
    assert clock.now() == 2.5
    assert len(seen) == len(EXPECTED_STREAM) + 2


@pytest.mark.parametrize("policy", [TimeoutPolicy(idle_timeout=1.5), TimeoutPolicy(run_timeout=1.5)])
def test_node_timeouts_of_langgraph(policy: TimeoutPolicy) -> None:
    clock = VirtualClock()
    with pytest.raises(Exception, match=r"(?i)timeout"):
        clock.run_async(fan_out(in_a_loop=True, timeout=policy).ainvoke, {})
    assert clock.now() == pytest.approx(1.5)


def test_retries_of_langgraph_back_off_in_virtual_time() -> None:
    attempts_at_s: list[float] = []

    def flaky(state: State) -> State:
        attempts_at_s.append(time.monotonic())
        if len(attempts_at_s) < 3:
            raise ConnectionError
        return {"done": [1.0]}

    policy = RetryPolicy(initial_interval=5, backoff_factor=2, jitter=False)
    graph = StateGraph(State).add_node("flaky", flaky, retry_policy=policy).add_edge(START, "flaky").compile()
    VirtualClock().run(graph.invoke, {})
    assert attempts_at_s == [0, 5, 15]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_checkpointer(durability: Any) -> None:
    clock, graph = VirtualClock(), fan_out(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    clock.run(lambda: graph.invoke({}, config, durability=durability))
    assert clock.now() == 9
    assert sorted(graph.get_state(config).values["done"]) == [1, 2, 3]


def test_an_agent_takes_the_same_virtual_time_sync_and_async() -> None:
    sync, in_a_loop = VirtualClock(), VirtualClock()
    answers = [
        sync.run(agent(1).invoke, AGENT_INPUT, AGENT_CONFIG),
        in_a_loop.run_async(agent(1).ainvoke, AGENT_INPUT, AGENT_CONFIG),
    ]
    assert [each["messages"][-1].content for each in answers] == ["found both"] * 2
    # Two model calls, and the longer of two look-ups that go side by side.
    assert sync.now() == in_a_loop.now() > 2.5


def test_a_hard_timeout_leaves_an_agent_behind_and_cancellation_does_not() -> None:
    budget_s = 3.0

    async def cancelled() -> tuple[str, float]:
        return await by_cancellation(1, budget_s), time.monotonic()

    whole, left, cut = VirtualClock(), VirtualClock(), VirtualClock()
    whole.run(agent(1).invoke, AGENT_INPUT, AGENT_CONFIG)
    assert left.run(by_future, 1, budget_s) == "timed out"
    assert cut.run_async(cancelled) == ("timed out", budget_s)
    assert left.returned_at_s == budget_s
    assert left.quiescent_at_s == whole.now() > budget_s
    # The agent's tools are sync: cancelling does not reach their threads, and asyncio.run waits for them.
    assert budget_s < cut.returned_at_s < whole.now()
