# An Agno agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from agno.agent import Agent
from agno.models.openai.like import OpenAILike
from agno.run.base import RunStatus
from agno.team import Team
from agno.tools import tool

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


@tool(name="lookup")
def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


@tool(name="lookup")
async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


timeout_s, way, streams = float(env["CASE_TIMEOUT_S"]), env["CASE_WAY"], env["CASE_STREAM"] == "1"
model = OpenAILike(id=env["OPENAI_MODEL"], base_url=env["OPENAI_BASE_URL"], api_key=env["OPENAI_API_KEY"])
tools = [lookup_async if env["CASE_TOOL"] == "async" else lookup]
researcher = Agent(name="researcher", role="Researches a question.", model=model, tools=tools)
agent = Team(name="manager", members=[researcher], model=model) if env["CASE_AGENT"] == "sub" else researcher


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    if way == "cancel-run":
        asyncio.get_running_loop().call_later(timeout_s, agent.cancel_run, "lab")
    try:
        async with asyncio.timeout(timeout_s if way == "asyncio-timeout" else None):
            run = agent.arun(env["CASE_QUESTION"], run_id="lab", stream=streams, yield_run_output=streams)
            run = [event async for event in run][-1] if streams else await run
        text, reason = run.content, None if run.status == RunStatus.completed else f"status: {run.status.value}"
        left = {"messages": len(run.messages or ()), "open_tool_calls": sum(t.result is None for t in run.tools or ())}
    except Exception as error:
        text, reason, left = None, f"{type(error).__name__}: {error}", None
    ended = str(reason).startswith(("TimeoutError", "status: CANCELLED"))
    outcome = "timeout" if ended else "error" if reason else "answer"
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
