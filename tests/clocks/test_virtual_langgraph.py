"""Spec 4, the stack: LangGraph, create_agent and the HTTP clients run unmodified in virtual time."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import json
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest
from fan_out_program import AGENT_CONFIG, AGENT_INPUT, State, agent, fan_out
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy
from qdrant_client import AsyncQdrantClient, QdrantClient

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

    def by_future() -> None:
        pool = cf.ThreadPoolExecutor(1)
        with pytest.raises(cf.TimeoutError):
            pool.submit(agent(1).invoke, AGENT_INPUT, AGENT_CONFIG).result(timeout=budget_s)

    async def by_cancellation() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(budget_s):
                await agent(1).ainvoke(AGENT_INPUT, AGENT_CONFIG)
        return time.monotonic()

    whole, left, cut = VirtualClock(), VirtualClock(), VirtualClock()
    whole.run(agent(1).invoke, AGENT_INPUT, AGENT_CONFIG)
    left.run(by_future)
    cancelled_at_s = cut.run_async(by_cancellation)
    assert left.returned_at_s == budget_s
    assert left.quiescent_at_s == whole.now() > budget_s
    assert cancelled_at_s == budget_s
    # The agent's tools are sync: cancelling does not reach their threads, and asyncio.run waits for them.
    assert budget_s < cut.returned_at_s < whole.now()


# ---- HTTP clients, over transports that wait as a server would make them wait

Answer = tuple[float, int, dict[str, str], Any]


def transports(web: ModuleType, script: Callable[[int], Answer], sent_at_s: list[float]) -> tuple[Any, Any]:
    """A sync and an async transport that answer the n-th request by script(n), and honour the read timeout."""

    def plan(request: Any) -> tuple[float, bool, Answer]:
        answer = script(len(sent_at_s))
        limit_s = request.extensions.get("timeout", {}).get("read")
        sent_at_s.append(time.monotonic())
        cut = limit_s is not None and answer[0] > limit_s
        return (limit_s if cut else answer[0]), cut, answer

    def finish(request: Any, cut: bool, answer: Answer) -> Any:
        if cut:
            raise web.ReadTimeout("simulated", request=request)
        return web.Response(answer[1], headers=answer[2], json=answer[3], request=request)

    class Sync(web.BaseTransport):  # type: ignore[name-defined, misc]
        def handle_request(self, request: Any) -> Any:
            wait_s, *rest = plan(request)
            time.sleep(wait_s)
            return finish(request, *rest)

    class Async(web.AsyncBaseTransport):  # type: ignore[name-defined, misc]
        async def handle_async_request(self, request: Any) -> Any:
            wait_s, *rest = plan(request)
            await asyncio.sleep(wait_s)
            return finish(request, *rest)

    return Sync(), Async()


def completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": choices, "usage": usage}


def chat(script: Callable[[int], Answer], sent_at_s: list[float]) -> ChatOpenAI:
    sync, in_a_loop = transports(httpx2, script, sent_at_s)
    return ChatOpenAI(
        model="m",
        api_key="k",  # type: ignore[arg-type]
        base_url="http://model.test/v1",
        timeout=60,
        max_retries=5,
        http_client=httpx2.Client(transport=sync),
        http_async_client=httpx2.AsyncClient(transport=in_a_loop),
    )


SCRIPT: list[Answer] = [
    (5.0, 429, {"retry-after": "30"}, {"error": {"message": "rate"}}),
    (90.0, 200, {}, completion("late")),
    (42.0, 200, {}, completion("final")),
]


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_chat_openai_obeys_retry_after_and_its_timeout_and_backs_off(in_a_loop: bool) -> None:
    sent_at_s: list[float] = []
    clock, model = VirtualClock(), chat(SCRIPT.__getitem__, sent_at_s)
    answer = clock.run_async(model.ainvoke, "hi") if in_a_loop else clock.run(model.invoke, "hi")
    assert answer.content == "final"
    assert sent_at_s[:2] == [0, 35]
    # Cut at 60 s, then the client's own backoff of 0.5 to 8 s.
    assert 95 < sent_at_s[2] < 104
    assert clock.now() == pytest.approx(sent_at_s[2] + 42)


def test_chat_openai_under_a_hard_timeout_goes_on_retrying() -> None:
    sent_at_s: list[float] = []
    clock, model = VirtualClock(), chat(SCRIPT.__getitem__, sent_at_s)

    def main() -> None:
        with pytest.raises(cf.TimeoutError):
            cf.ThreadPoolExecutor(1).submit(model.invoke, "hi").result(timeout=50)

    clock.run(main)
    assert clock.returned_at_s == 50
    assert len(sent_at_s) == 3
    assert clock.quiescent_at_s == pytest.approx(sent_at_s[2] + 42)


def test_chat_openai_streams_chunk_by_chunk() -> None:
    class Body(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for number in range(5):
                time.sleep(10)
                choices = [{"index": 0, "delta": {"content": str(number)}, "finish_reason": None}]
                chunk = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": choices}
                yield f"data: {json.dumps(chunk)}\n\n".encode()
            yield b"data: [DONE]\n\n"

    class Transport(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            time.sleep(2)
            return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Body(), request=request)

    client = httpx2.Client(transport=Transport())
    model = ChatOpenAI(model="m", api_key="k", base_url="http://model.test/v1", http_client=client)  # type: ignore[arg-type]
    got = VirtualClock().run(lambda: [(part.content, time.monotonic()) for part in model.stream("hi") if part.content])
    assert got == [(str(number), 12 + 10 * number) for number in range(5)]


def test_one_chat_openai_made_before_the_run_serves_many_threads() -> None:
    sent_at_s: list[float] = []
    clock, model = VirtualClock(), chat(lambda n: (10.0, 200, {}, completion("x")), sent_at_s)

    def main() -> None:
        with cf.ThreadPoolExecutor(20) as pool:
            assert len(list(pool.map(model.invoke, ["hi"] * 20))) == 20

    clock.run(main)
    assert clock.now() == 10
    assert sent_at_s == [0] * 20


def test_qdrant_client_sync_and_async() -> None:
    points = [{"id": 1, "version": 0, "score": 0.9, "payload": {"a": 1}}]
    body = {"result": {"points": points}, "status": "ok", "time": 0.1}
    sync, in_a_loop = transports(httpx, lambda n: ((7.5, 30.0, 4.5)[n], 200, {}, body), [])
    options: dict[str, Any] = {"url": "http://store.test:6333", "check_compatibility": False, "timeout": 20}
    client, async_client = QdrantClient(transport=sync, **options), AsyncQdrantClient(transport=in_a_loop, **options)
    clock = VirtualClock()
    assert clock.run(lambda: client.query_points("c", query=[0.1, 0.2])).points[0].score == 0.9
    assert clock.now() == 7.5
    with pytest.raises(Exception, match="simulated"):
        clock.run(lambda: client.query_points("c", query=[0.1, 0.2]))
    assert clock.now() == 27.5
    assert clock.run_async(lambda: async_client.query_points("c", query=[0.1, 0.2])).points[0].id == 1
    assert clock.now() == 32
