"""What `enforce` costs on an undisturbed run over the bare graph, what idle hooks cost, and what its import costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import httpx
import httpx2
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from langgraph_supervisor import create_supervisor

import docmind_lab as dl
from benchmarks.figures import Figure, sampled
from benchmarks.pairs import Work, built_for_good, pair_ratios
from docmind_lab.alternatives.event_loop import shared_loop
from docmind_lab.services.openai_service import MODEL_NAME
from docmind_lab.services.server import ServiceOptions, ServiceProcess
from docmind_lab.statistics.latency.profile import LatencyProfile

CPU_TARGETS = {"A": 1.05, "C": 1.15, "E": 1.15, "F": 1.15}
INERT_TARGET, IMPORT_TARGET, LIMITS_TARGET = 1.01, 1.15, 1.05
LATENCY_TARGET_MS = 2.0
REPEATS = 30
IMPORTS = 9
# No run comes near it.
_BUDGET_S = 60.0
_LIMITS = dl.Limits(first_token_s=50, idle_s=40, total_s=55, tool_s=55)
_IMPORT = "import time; began = time.perf_counter(); {code}; print(time.perf_counter() - began)"
_OURS = "from docmind_lab import enforce; import langchain_openai"
_THEIRS = "import langgraph.graph; import langchain_openai"

Mode = Literal["sync", "async"]


@dataclass(frozen=True)
class _Case:
    """A graph as somebody writes it, over clients of its own.

    Args:
        name: In the figures.
        make: Makes the graph anew, of nodes that are sync or async, for the model server at an address.
        given: Its input.
        done: What a run has done, from its last state: equal for runs that did the same.
        runs: How many runs are timed together; process time counts in steps that one short run would be lost in.
    """

    name: str
    make: Callable[[str, Mode], Any]
    given: dict[str, Any]
    done: Callable[[Any], Any]
    runs: int


def run(repeats: int = REPEATS) -> Iterator[Figure]:
    """Ratios of CPU over pairs of runs, on sockets; seconds of latency in the same pairs."""
    loop = asyncio.new_event_loop()
    with ServiceProcess(ServiceOptions(profile=LatencyProfile.named("fast/1000"))) as services, built_for_good():
        base_url = services.addresses.openai_base_url
        try:
            for case in CASES:
                for mode in ("sync", "async"):
                    yield from _cpu(case, mode, base_url, loop, repeats)
            for letter in CPU_TARGETS:
                yield _latency(SUPERVISOR, letter, base_url, loop, repeats)
            yield _idle_hooks(SUPERVISOR, base_url, loop, 2 * repeats)
        finally:
            dl.uninstall()
            loop.close()
    ratios = [_import_s(_OURS) / _import_s(_THEIRS) for _ in range(IMPORTS)]
    yield sampled("import of enforce with langchain-openai / langgraph with it", ratios, at_most=IMPORT_TARGET)


def _cpu(case: _Case, mode: Mode, base_url: str, loop: asyncio.AbstractEventLoop, repeats: int) -> Iterator[Figure]:
    """What each alternative costs, and what the bare graph costs where some of them have to run it."""
    for letter, target in CPU_TARGETS.items():
        pair = _enforced(case, mode, letter, base_url, loop), _bare(case, mode, base_url, loop)
        yield sampled(f"{case.name}, {mode}, {letter} / bare", pair_ratios([pair], repeats), at_most=target)
    # The limits never strike.
    pair = _enforced(case, mode, "A", base_url, loop, _LIMITS), _enforced(case, mode, "A", base_url, loop)
    yield sampled(f"{case.name}, {mode}, A with limits / A", pair_ratios([pair], repeats), at_most=LIMITS_TARGET)
    floors = [("as a node of another graph", _as_node(case, mode, base_url, loop))]
    if mode == "sync":
        floors.insert(0, ("on an event loop", _on_shared_loop(case, base_url)))
    for where, work in floors:
        ratios = pair_ratios([(work, _bare(case, mode, base_url, loop))], repeats)
        yield sampled(f"{case.name}, {mode}, bare {where} / bare", ratios)


# ---- graphs


class _Statuses(TypedDict, total=False):
    a: int
    b: int
    c: int
    d: int


def _four_nodes(base_url: str, mode: Mode) -> Any:
    client, async_client = httpx.Client(trust_env=False), httpx.AsyncClient(trust_env=False)

    def node(name: str) -> Any:
        def ask(state: _Statuses) -> dict[str, int]:
            return {name: client.get(f"{base_url}/models").status_code}

        async def ask_async(state: _Statuses) -> dict[str, int]:
            return {name: (await async_client.get(f"{base_url}/models")).status_code}

        return ask if mode == "sync" else ask_async

    graph, before = StateGraph(_Statuses), START
    for name in _Statuses.__annotations__:
        graph.add_node(f"ask {name}", node(name))
        graph.add_edge(before, f"ask {name}")
        before = f"ask {name}"
    return graph.compile()


def _supervisor(base_url: str, mode: Mode) -> Any:
    model = ChatOpenAI(
        model=MODEL_NAME,
        base_url=base_url,
        api_key="not used",
        http_client=httpx2.Client(trust_env=False),
        http_async_client=httpx2.AsyncClient(trust_env=False),
    )
    researcher = create_agent(model, [_look_up], system_prompt="You look up facts. Do no sums.", name="researcher")
    calculator = create_agent(model, [_multiply], system_prompt="You do sums, one at a time.", name="calculator")
    prompt = "You lead a researcher and a calculator. Hand each part of the question to the one who can answer it."
    return create_supervisor([researcher, calculator], model=model, prompt=prompt).compile(name="supervisor")


def _look_up(query: str) -> str:
    """Look up what is known about harbours, ships and the people who work there."""
    return f"{query}: Fairhaven is the largest harbour. It is 14 m deep, and 620 people work there."


def _multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b


def _conversation(state: Any) -> list[tuple[str, str | None]]:
    # Not their texts: the simulated model quotes the number of a call, which no two runs have in common.
    return [(message.type, message.name) for message in state["messages"]]


FOUR_NODES = _Case("four HTTP nodes", _four_nodes, {}, dict, runs=10)
_QUESTION = HumanMessage("How many people work at Fairhaven, and what is 620 times 3?", id="question")
SUPERVISOR = _Case("supervisor", _supervisor, {"messages": [_QUESTION]}, _conversation, runs=1)
CASES = (FOUR_NODES, SUPERVISOR)


# ---- arms


def _work(case: _Case, state: Callable[[], Any]) -> Work:
    return lambda: [case.done(state()) for _ in range(case.runs)]


def _bare(case: _Case, mode: Mode, base_url: str, loop: asyncio.AbstractEventLoop) -> Work:
    graph = case.make(base_url, mode)
    if mode == "sync":
        return _work(case, lambda: graph.invoke(case.given))
    return _work(case, lambda: loop.run_until_complete(graph.ainvoke(case.given)))


def _enforced(
    case: _Case,
    mode: Mode,
    letter: str,
    base_url: str,
    loop: asyncio.AbstractEventLoop,
    limits: dl.Limits | None = None,
) -> Work:
    agent = dl.enforce(case.make(base_url, mode), _BUDGET_S, letter, limits=limits)

    def state() -> Any:
        given = case.given
        result = agent.invoke(given) if mode == "sync" else loop.run_until_complete(agent.ainvoke(given))
        assert result.outcome == "answered", result
        return result.state

    return _work(case, state)


def _on_shared_loop(case: _Case, base_url: str) -> Work:
    """The bare graph as C, E and F have to run it for a caller without a loop: its nodes run in threads."""
    graph = case.make(base_url, "sync")
    return _work(case, lambda: shared_loop().run(graph.ainvoke(case.given)))


def _as_node(case: _Case, mode: Mode, base_url: str, loop: asyncio.AbstractEventLoop) -> Work:
    """The bare graph as F has to run it: LangGraph limits a node, and so the graph becomes one."""
    graph, states = case.make(base_url, mode), []

    async def system(state: _Statuses) -> dict[str, Any]:
        states.append(await graph.ainvoke(case.given))
        return {}

    async def dispatch(state: _Statuses) -> Send:
        return Send("system", {}, timeout=_BUDGET_S)

    outer = StateGraph(_Statuses)
    outer.add_node("system", system)
    outer.add_conditional_edges(START, dispatch, ["system"])
    compiled = outer.compile()

    def state() -> Any:
        running = compiled.ainvoke({})
        _ = shared_loop().run(running) if mode == "sync" else loop.run_until_complete(running)
        return states.pop()

    return _work(case, state)


# ---- latency, idle hooks, import


def _latency(case: _Case, letter: str, base_url: str, loop: asyncio.AbstractEventLoop, repeats: int) -> Figure:
    """How much longer an awaited call takes than the bare graph, in time that passes."""
    enforced, bare = _enforced(case, "async", letter, base_url, loop), _bare(case, "async", base_url, loop)

    def seconds(work: Work) -> float:
        began_s = time.perf_counter()
        work()
        return time.perf_counter() - began_s

    extra_ms = [1000 * (seconds(enforced) - seconds(bare)) for _ in range(repeats)]
    return sampled(f"latency added by {letter}", extra_ms, unit="ms", at_most=LATENCY_TARGET_MS)


def _idle_hooks(case: _Case, base_url: str, loop: asyncio.AbstractEventLoop, repeats: int) -> Figure:
    work = _bare(case, "async", base_url, loop)

    def hooked() -> Any:
        dl.install(["httpx"])
        try:
            return work()
        finally:
            dl.uninstall()

    def free() -> Any:
        # Both arms install and uninstall, which is no part of what hooks cost when they are there.
        dl.install(["httpx"])
        dl.uninstall()
        return work()

    return sampled("CPU with idle hooks / without hooks", pair_ratios([(hooked, free)], repeats), at_most=INERT_TARGET)


def _import_s(code: str) -> float:
    timed = [sys.executable, "-c", _IMPORT.format(code=code)]
    return float(subprocess.run(timed, capture_output=True, text=True, check=True).stdout)
