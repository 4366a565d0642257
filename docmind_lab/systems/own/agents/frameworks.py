"""Adapters, one for each framework: its object as an `Agent`, with what its own timeout of a whole run is.

An adapter is called when an object of its framework is there, so none imports a framework by itself.
"""

# ruff: noqa: PLC0415 - each framework is imported where an object of it is there

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from docmind_lab.systems.own.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def _of_openai_agents(agent: Any, reference: str) -> Agent:
    """Return an `agents.Agent` as an agent of the lab. Its tracing is off: nothing leaves while it is measured."""
    from agents import RunConfig, Runner

    def untraced(options: dict[str, Any]) -> dict[str, Any]:
        return {"run_config": RunConfig(tracing_disabled=True), **options}

    async def call(question: str, **options: Any) -> Any:
        return await Runner.run(agent, question, **untraced(options))

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        result = Runner.run_streamed(agent, question, **untraced(options))
        timer = asyncio.get_running_loop().call_later(seconds, result.cancel)
        try:
            async for _ in result.stream_events():
                pass
        finally:
            timer.cancel()
        if result.final_output is None:
            raise NativeTimeoutReached
        return result

    native = NativeTimeout("result.cancel() by a timer, with Runner.run_streamed", call_within)
    return Agent(reference or agent.name, call, is_async=True, framework="OpenAI Agents SDK", native=native)


def _of_pydantic_ai(agent: Any, reference: str) -> Agent:
    from pydantic_ai.exceptions import RunTimedOut

    async def call(question: str, **options: Any) -> Any:
        return await agent.run(question, **options)

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        try:
            return await agent.run(question, timeout=seconds, **options)
        except RunTimedOut as error:
            raise NativeTimeoutReached from error

    native = NativeTimeout("agent.run(timeout=…)", call_within)
    return Agent(reference or agent.name or "agent", call, is_async=True, framework="pydantic-ai", native=native)


FRAMEWORKS: Mapping[str, Callable[[Any, str], Agent]] = MappingProxyType(
    {
        "agents.agent.Agent": _of_openai_agents,
        "pydantic_ai.agent.abstract.AbstractAgent": _of_pydantic_ai,
    }
)
"""Class of an object, or a base of it → its adapter. By name, so that no framework is imported that is not loaded."""
