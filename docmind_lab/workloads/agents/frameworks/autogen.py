"""AG2 before 1.0 (`autogen`): `ConversableAgent.run`. A run has no timeout of its own."""

from __future__ import annotations

from typing import Any

from docmind_lab.workloads.agents.agent import Agent


def adapt(found: Any, reference: str) -> Agent:
    """Return a `ConversableAgent` as an agent of the lab; it is asked without a person, for its first reply."""

    def call(question: str, **options: Any) -> Any:
        response = found.run(message=question, **{"max_turns": 1, "user_input": False, **options})
        response.process()
        said = [one for one in response.messages if one.get("content") and one.get("content") != question]
        return said[-1]["content"] if said else response.summary

    return Agent(reference or found.name, call, is_async=False, framework="AG2")
