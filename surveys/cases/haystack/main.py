# A Haystack agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import AgentTool, tool

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


@tool(name="lookup")
def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


@tool(name="lookup")
async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


async def ignore(chunk) -> None:
    pass


timeout_s, way = float(env["CASE_TIMEOUT_S"]), env["CASE_WAY"]
limit = timeout_s if way == "generator-timeout" else None
model = OpenAIChatGenerator(model=env["OPENAI_MODEL"], api_base_url=env["OPENAI_BASE_URL"], timeout=limit)
researcher = Agent(chat_generator=model, tools=[lookup_async if env["CASE_TOOL"] == "async" else lookup])
research = AgentTool(agent=researcher, name="research", description="Researches a question.")
agent = Agent(chat_generator=model, tools=[research]) if env["CASE_AGENT"] == "sub" else researcher


async def main() -> None:
    callback = ignore if env["CASE_STREAM"] == "1" else None
    await agent.warm_up_async()
    print(json.dumps({"event": "start"}), flush=True)
    try:
        async with asyncio.timeout(timeout_s if way == "asyncio-timeout" else None):
            result = await agent.run_async([ChatMessage.from_user(env["CASE_QUESTION"])], streaming_callback=callback)
        text, reason = result["last_message"].text, None
    except Exception as error:
        text, reason = None, f"{type(error).__name__}: {error}"
    outcome = "answer" if text else "timeout" if "Timeout" in reason or "timed out" in reason else "error"
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": None}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
