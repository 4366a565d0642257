"""AG2: `agent.ask`. A run has no timeout of its own."""

from __future__ import annotations

from typing import Any

from docmind_lab.workloads.agents.agent import Agent


def adapt(found: Any, reference: str) -> Agent:
    """Return an AG2 agent as an agent of the lab."""

    async def call(question: str, **options: Any) -> Any:
        return (await found.ask(question, **options)).body

    return Agent(reference or found.name, call, is_async=True, framework="AG2")
