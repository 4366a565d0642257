# An AG2 agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from ag2 import Agent, MemoryStream, tool
from ag2.config import OpenAIConfig
from ag2.events import ModelRequest, ModelResponse, ToolResultsEvent

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


@tool(name="lookup")
def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


@tool(name="lookup")
async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


timeout_s, prompt = float(env["CASE_TIMEOUT_S"]), "Use your tool, then answer."
config = OpenAIConfig(env["OPENAI_MODEL"], base_url=env["OPENAI_BASE_URL"], streaming=env["CASE_STREAM"] == "1")
tools = [lookup_async if env["CASE_TOOL"] == "async" else lookup]
researcher = Agent("researcher", prompt=prompt, config=config, tools=tools)
manager = Agent("manager", prompt=prompt, config=config, tools=[researcher.as_tool(description="Researches.")])
agent, stream = manager if env["CASE_AGENT"] == "sub" else researcher, MemoryStream()


async def answer() -> str:
    if env["CASE_WAY"] == "run-result":
        async with agent.run(env["CASE_QUESTION"], stream=stream) as run:
            return (await asyncio.wait_for(run.result(), timeout_s)).body
    async with asyncio.timeout(timeout_s):
        return (await agent.ask(env["CASE_QUESTION"], stream=stream)).body


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    end = {"event": "end", "outcome": "answer", "text": None, "error": None}
    try:
        end["text"] = await answer()
    except Exception as error:
        end["outcome"] = "timeout" if isinstance(error, TimeoutError) else "error"
        end["error"] = f"{type(error).__name__}: {error}"
    seen = [e for e in await stream.history.get_events() if type(e) in (ModelRequest, ModelResponse, ToolResultsEvent)]
    calls = sum(len(e.tool_calls.calls) if type(e) is ModelResponse else -len(getattr(e, "results", ())) for e in seen)
    print(json.dumps(end | {"left": {"messages": len(seen), "open_tool_calls": calls}}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
