"""AG2 before 1.0 (`autogen`): a chat with a `ConversableAgent`. A chat has no timeout of its own."""

from __future__ import annotations

from typing import Any

from autogen import ConversableAgent

from docmind_lab.workloads.agents.agent import Agent

# A request and the result of a tool are two turns.
_MOST_REPLIES = 20


def adapt(found: Any, reference: str) -> Agent:
    """Return a `ConversableAgent` as an agent of the lab: a user without a person asks it, and runs its tools."""

    def call(question: str, **options: Any) -> Any:
        user = ConversableAgent(
            "user",
            llm_config=False,
            human_input_mode="NEVER",
            max_consecutive_auto_reply=_MOST_REPLIES,
            is_termination_msg=lambda message: not message.get("tool_calls"),
            function_map=found.function_map,
        )
        # In the calling thread; `ConversableAgent.run` starts one that knows nothing of the run.
        return user.initiate_chat(found, message=question, silent=True, **options).summary

    return Agent(reference or found.name, call, is_async=False, framework="AG2")
