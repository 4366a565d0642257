# A smolagents agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env
from threading import Timer

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from rich.console import Console
from smolagents import AgentLogger, LogLevel, OpenAIModel, ToolCallingAgent, tool

client, timeout_s, streams = httpx.Client(timeout=None), float(env["CASE_TIMEOUT_S"]), env["CASE_STREAM"] == "1"


@tool
def lookup(query: str) -> str:
    """Looks up facts about a query.

    Args:
        query: What to look up.
    """
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


model = OpenAIModel(env["OPENAI_MODEL"], api_base=env["OPENAI_BASE_URL"], api_key=env["OPENAI_API_KEY"])
about = {"model": model, "stream_outputs": streams, "logger": AgentLogger(LogLevel.OFF, Console(stderr=True))}
researcher = ToolCallingAgent([lookup], name="researcher", description="Researches a question.", **about)
agent = ToolCallingAgent([], managed_agents=[researcher], **about) if env["CASE_AGENT"] == "sub" else researcher


def run() -> str:
    if not streams:
        return agent.run(env["CASE_QUESTION"])
    return list(agent.run(env["CASE_QUESTION"], stream=True))[-1].output


async def answer() -> str:
    if env["CASE_WAY"] == "interrupt":
        Timer(timeout_s, agent.interrupt).start()
        return run()
    async with asyncio.timeout(timeout_s):
        return await asyncio.to_thread(run)


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    outcome, text, reason = "answer", None, None
    try:
        text = await answer()
    except Exception as error:
        ended = isinstance(error, TimeoutError) or str(error) == "Agent interrupted."
        outcome, reason = "timeout" if ended else "error", f"{type(error).__name__}: {error}"
    calls = sum(len(getattr(s, "tool_calls", 0) or ()) for s in agent.memory.steps if not getattr(s, "observations", 1))
    left = {"messages": len(agent.write_memory_to_messages()), "open_tool_calls": calls}
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
