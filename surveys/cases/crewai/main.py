# A CrewAI crew with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

timeout_s = float(env["CASE_TIMEOUT_S"])
client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


@tool("lookup")
def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


@tool("lookup")
async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


llm = LLM(model="openai/" + env["OPENAI_MODEL"], base_url=env["OPENAI_BASE_URL"], api_key=env["OPENAI_API_KEY"])
limit = {"max_execution_time": int(timeout_s)} if env["CASE_WAY"].startswith("max-execution-time") else {}
tools = [lookup_async if env["CASE_TOOL"] == "async" else lookup]
about = {"goal": "Answer the question", "backstory": "You use your tools.", "llm": llm, **limit}
researcher = Agent(role="Researcher", tools=tools, **about)
manager = Agent(role="Manager", allow_delegation=True, **about)
sub, streams = env["CASE_AGENT"] == "sub", env["CASE_STREAM"] == "1"
task = Task(description=env["CASE_QUESTION"], expected_output="An answer", agent=manager if sub else researcher)
crew = Crew(agents=[manager, researcher] if sub else [researcher], tasks=[task], stream=streams)


async def answer() -> str:
    if env["CASE_WAY"] == "max-execution-time":
        output = crew.kickoff()
        return "".join(chunk.content for chunk in output) if streams else output.raw
    async with asyncio.timeout(None if limit else timeout_s):
        output = await (crew.kickoff_async() if env["CASE_WAY"] == "kickoff-async" else crew.akickoff())
        return "".join([chunk.content async for chunk in output]) if streams else output.raw


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    try:
        outcome, text, reason = "answer", await answer(), None
    except Exception as error:
        outcome, text = "timeout" if isinstance(error, TimeoutError) else "error", None
        reason = f"{type(error).__name__}: {error}"
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": None}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
