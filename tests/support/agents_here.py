"""Agents of several frameworks, each with one tool, that ask a model at a host that does not exist."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import openai

HOST = "http://model.test/v1"
MODEL = "any-model"
QUESTION = "What does a with statement do?"


def _messages(question: str) -> Any:
    return [{"role": "user", "content": question}]


def ask(question: str) -> Any:
    """A sync function: one request; it returns an object with the text under `content`."""
    with openai.OpenAI(base_url=HOST, api_key="none") as client:
        return client.chat.completions.create(model=MODEL, messages=_messages(question)).choices[0].message


async def ask_async(question: str, tone: str = "plain") -> str:
    """An async function with a keyword."""
    async with openai.AsyncOpenAI(base_url=HOST, api_key="none") as client:
        made = await client.chat.completions.create(model=MODEL, messages=_messages(question))
        return f"{tone}: {made.choices[0].message.content}"


async def ask_in_pieces(question: str) -> AsyncIterator[str]:
    """An async generator of one request, as an agent that streams is."""
    yield "Well, "
    yield await ask_async(question)


def ask_in_steps(question: str, should_stop: Callable[[], bool]) -> str:
    """A sync function of forty requests that looks at its flag between two of them."""
    answer = "nothing yet"
    for _ in range(40):
        if should_stop():
            return f"draft: {answer}"
        answer = str(ask(question).content)
    return answer


def lookup(query: str) -> str:
    """Looks up facts about a query.

    Args:
        query: What to look up.
    """
    return f"A with statement calls __enter__ and __exit__. Asked: {query}"


async def by_openai_agents(question: str) -> Any:
    import agents

    # The Responses API, as by default.
    client = openai.AsyncOpenAI(base_url=HOST, api_key="none")
    model = agents.OpenAIResponsesModel(model=MODEL, openai_client=client)
    agent = agents.Agent(name="researcher", model=model, tools=[agents.function_tool(lookup)])
    return await agents.Runner.run(agent, question, run_config=agents.RunConfig(tracing_disabled=True))


async def by_pydantic_ai(question: str) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=HOST, api_key="none"))
    agent = Agent(model, name="researcher")
    agent.tool_plain(lookup)
    return await agent.run(question)


FRAMEWORKS: dict[str, Callable[[str], Any]] = {"agents": by_openai_agents, "pydantic_ai": by_pydantic_ai}
"""Module of a framework → a function of a question that calls its agent."""
