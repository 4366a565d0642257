"""OpenAI Agents SDK: `Runner.run`, and `result.cancel()` by a timer as its own timeout."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import RunConfig, Runner

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def adapt(found: Any, reference: str) -> Agent:
    """Return an `agents.Agent` as an agent of the lab. Its tracing is off: nothing leaves while it is measured."""

    async def call(question: str, **options: Any) -> Any:
        return await Runner.run(found, question, **_untraced(options))

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        result = Runner.run_streamed(found, question, **_untraced(options))
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
    return Agent(reference or found.name, call, is_async=True, framework="OpenAI Agents SDK", native=native)


def _untraced(options: dict[str, Any]) -> dict[str, Any]:
    return {"run_config": RunConfig(tracing_disabled=True), **options}
