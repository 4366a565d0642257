"""A LangGraph program with fan-out, a tool node and agents in virtual time: what it did, and when, as one digest."""

from __future__ import annotations

import asyncio
import concurrent.futures as cf
import hashlib
import json
import operator
import random
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode

from docmind_lab.virtual_time import VirtualClock

BUDGET_S = 12.0


class SlowModel(BaseChatModel):
    """Answers after a latency keyed by how long the conversation is; asks for two look-ups first."""

    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "slow"

    def bind_tools(self, tools: Any, **options: Any) -> SlowModel:
        return self

    def _latency_s(self, messages: list[BaseMessage]) -> float:
        return random.Random(f"{self.seed}/{len(messages)}").lognormvariate(1.0, 0.5)

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        if any(isinstance(message, ToolMessage) for message in messages):
            message = AIMessage("found both")
        else:
            calls = [{"name": "look_up", "args": {"seconds": s}, "id": f"call-{s}"} for s in (1.5, 2.5)]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        time.sleep(self._latency_s(messages))
        return self._answer(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        await asyncio.sleep(self._latency_s(messages))
        return self._answer(messages)


@tool
def look_up(seconds: float) -> str:
    """Look something up, which takes seconds."""
    time.sleep(seconds)
    return f"found after {seconds}"


def agent(seed: int) -> Any:
    """A create_agent role with a checkpointer."""
    return create_agent(SlowModel(seed=seed), [look_up], system_prompt="Look up.", checkpointer=InMemorySaver())


AGENT_INPUT: dict[str, Any] = {"messages": [HumanMessage("question")]}
AGENT_CONFIG: Any = {"configurable": {"thread_id": "1"}, "max_concurrency": 4}


class State(TypedDict, total=False):
    """Messages, and what each node added."""

    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[float], operator.add]


def fan_out(*, in_a_loop: bool = False, checkpointer: Any = None, **node_options: Any) -> Any:
    """START → three parallel nodes of 1, 2 and 3 s → a question → two parallel tool calls of 4 and 6 s → END."""

    def node(seconds: float) -> Callable[..., Any]:
        def work(state: State) -> State:
            time.sleep(seconds)
            return {"done": [seconds]}

        async def awork(state: State) -> State:
            await asyncio.sleep(seconds)
            return {"done": [seconds]}

        return awork if in_a_loop else work

    def ask(state: State) -> State:
        calls = [{"name": "look_up", "args": {"seconds": s}, "id": f"call-{s}"} for s in (4.0, 6.0)]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    graph = StateGraph(State)
    names = [f"n{seconds}" for seconds in (1.0, 2.0, 3.0)]
    for name in names:
        graph.add_node(name, node(float(name[1:])), **node_options)
        graph.add_edge(START, name)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([look_up]))
    graph.add_edge(names, "ask")
    graph.add_edge("ask", "tools")
    graph.add_edge("tools", END)
    return graph.compile(checkpointer=checkpointer)


def by_future(seed: int, budget_s: float = BUDGET_S) -> str:
    """A hard timeout: the caller waits for a future, the graph goes on."""
    future: cf.Future[Any] = cf.Future()

    def work() -> None:
        try:
            future.set_result(agent(seed).invoke(AGENT_INPUT, AGENT_CONFIG)["messages"][-1].content)
        except BaseException as error:  # noqa: BLE001 - handed over
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    try:
        return str(future.result(budget_s))
    except cf.TimeoutError:
        return "timed out"


async def by_cancellation(seed: int, budget_s: float = BUDGET_S) -> str:
    """As `by_future`, but the graph is cancelled."""
    try:
        async with asyncio.timeout(budget_s):
            return str((await agent(seed).ainvoke(AGENT_INPUT, AGENT_CONFIG))["messages"][-1].content)
    except TimeoutError:
        return "timed out"


def _updates(graph: Any) -> list[tuple[str, float]]:
    return [(next(iter(update)), time.monotonic()) for update in graph.stream({}, stream_mode="updates")]


def answer(clock_seed: int | None, seed: int = 3) -> str:
    """What the graph and the agent come to, whatever the order of what is ready."""
    clock = VirtualClock(clock_seed)
    found = clock.run(lambda: agent(seed).invoke(AGENT_INPUT, AGENT_CONFIG)["messages"])
    done = VirtualClock(clock_seed).run(lambda: fan_out().invoke({})["done"])
    return json.dumps([[message.content for message in found], clock.returned_at_s, sorted(done)])


def table() -> str:
    """The digest of every instant and answer of several runs."""
    rows: list[Any] = []
    for seed in range(3):
        for function in (by_future, by_cancellation):
            clock = VirtualClock(horizon_s=5 * BUDGET_S)
            run = clock.run_async if function is by_cancellation else clock.run
            outcome = run(function, seed)  # type: ignore[arg-type]
            rows.append([seed, f"_{function.__name__}", outcome, clock.returned_at_s, clock.quiescent_at_s])
    rows.append(VirtualClock().run(_updates, fan_out()))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()
