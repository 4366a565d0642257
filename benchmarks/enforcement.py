"""What `enforce` costs on an undisturbed run over the bare graph, what idle hooks cost, and what its import costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpx2
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

import docmind_lab as dl
from benchmarks.figures import Figure, sampled
from benchmarks.pairs import Work, pair_ratios
from docmind_lab.analysis.latency.profile import LatencyProfile
from docmind_lab.services.openai_service import MODEL_NAME
from docmind_lab.services.server import ServiceOptions, ServiceProcess

CPU_TARGET, INERT_TARGET, IMPORT_TARGET = 1.05, 1.01, 1.15
LATENCY_TARGET_MS = 2.0
REPEATS = 40
IMPORTS = 9
# No run comes near it.
_BUDGET_S = 60.0
_GIVEN = {"messages": [HumanMessage("What is a deadline?", id="question")]}
_IMPORT = "import time; began = time.perf_counter(); {code}; print(time.perf_counter() - began)"
_OURS = "from docmind_lab import enforce; import langchain_openai"
_THEIRS = "import langgraph.graph; import langchain_openai"


def run(repeats: int = REPEATS) -> Iterator[Figure]:
    """Ratios of CPU over pairs of runs of one agent with a tool, on sockets; seconds of latency in the same pairs."""
    with ServiceProcess(ServiceOptions(profile=LatencyProfile.named("fast/1000"))) as services:
        base_url = services.addresses.openai_base_url
        loop = asyncio.new_event_loop()
        try:
            for letter in ("A", "C", "E"):
                agent = dl.enforce(_agent(base_url), _BUDGET_S, letter)
                bare = _bare(_agent(base_url), loop)
                ratios = pair_ratios([(_enforced(agent, loop), bare)], repeats)
                yield sampled(f"CPU of a run under {letter} / the bare graph", ratios, at_most=CPU_TARGET)
                extra_ms = [1000 * s for s in _extra_seconds(_enforced(agent, loop), bare, repeats)]
                yield sampled(f"latency added by {letter}", extra_ms, unit="ms", at_most=LATENCY_TARGET_MS)
            graph = _agent(base_url)
            ratios = pair_ratios([(_with_hooks(_bare(graph, loop)), _without_hooks(_bare(graph, loop)))], 2 * repeats)
            yield sampled("CPU with idle hooks / without hooks", ratios, at_most=INERT_TARGET)
        finally:
            dl.uninstall()
            loop.close()
    ratios = [_import_s(_OURS) / _import_s(_THEIRS) for _ in range(IMPORTS)]
    yield sampled("import of enforce with langchain-openai / langgraph with it", ratios, at_most=IMPORT_TARGET)


def _agent(base_url: str) -> Any:
    """An agent as somebody builds it, over a client of its own."""
    model = ChatOpenAI(
        model=MODEL_NAME,
        base_url=base_url,
        api_key="not used",
        http_async_client=httpx2.AsyncClient(trust_env=False),
    )
    return create_agent(model, tools=[StructuredTool.from_function(_look_up, name="look_up", coroutine=_look_up_async)])


def _look_up(query: str) -> str:
    """Look something up."""
    return f"{query}: a deadline is an instant, and a budget is a number of seconds."


async def _look_up_async(query: str) -> str:
    """Look something up."""
    return _look_up(query)


def _enforced(agent: Any, loop: asyncio.AbstractEventLoop) -> Work:
    def work() -> Any:
        result = _on(loop, agent.ainvoke(_GIVEN))
        assert result.outcome == "answered", result
        return result.state["messages"][-1].text

    return work


def _bare(graph: Any, loop: asyncio.AbstractEventLoop) -> Work:
    return lambda: _on(loop, graph.ainvoke(_GIVEN))["messages"][-1].text


def _with_hooks(work: Work) -> Work:
    def hooked() -> Any:
        dl.install(["httpx"])
        try:
            return work()
        finally:
            dl.uninstall()

    return hooked


def _without_hooks(work: Work) -> Work:
    def free() -> Any:
        # Both arms install and uninstall, which is no part of what hooks cost when they are there.
        dl.install(["httpx"])
        dl.uninstall()
        return work()

    return free


def _on(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Any:
    return loop.run_until_complete(coroutine)


def _extra_seconds(one: Work, other: Work, repeats: int) -> list[float]:
    """Return how much longer the first took than the second, in time that passes, for each pair."""

    def seconds(work: Callable[[], Any]) -> float:
        began_s = time.perf_counter()
        work()
        return time.perf_counter() - began_s

    return [seconds(one) - seconds(other) for _ in range(repeats)]


def _import_s(code: str) -> float:
    timed = [sys.executable, "-c", _IMPORT.format(code=code)]
    return float(subprocess.run(timed, capture_output=True, text=True, check=True).stdout)
