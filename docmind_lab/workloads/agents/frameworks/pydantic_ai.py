"""pydantic-ai: `agent.run`, and its argument `timeout`."""

from __future__ import annotations

from typing import Any

from pydantic_ai.exceptions import RunTimedOut

from docmind_lab.workloads.agents.agent import Agent, NativeTimeout, NativeTimeoutReached


def adapt(found: Any, reference: str) -> Agent:
    """Return a pydantic-ai agent as an agent of the lab."""

    async def call(question: str, **options: Any) -> Any:
        return await found.run(question, **options)

    async def call_within(seconds: float, question: str, **options: Any) -> Any:
        try:
            return await found.run(question, timeout=seconds, **options)
        except RunTimedOut as error:
            raise NativeTimeoutReached from error

    native = NativeTimeout("agent.run(timeout=…)", call_within)
    return Agent(reference or found.name or "agent", call, is_async=True, framework="pydantic-ai", native=native)
