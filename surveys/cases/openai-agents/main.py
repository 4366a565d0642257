import asyncio
import json
import os
import sys

import httpx
from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api
from agents.exceptions import ToolTimeoutError

URL, WAY, TIMEOUT_S = os.environ["CASE_TOOL_URL"], os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
QUESTION, MODEL = os.environ["CASE_QUESTION"], os.environ["OPENAI_MODEL"]
set_default_openai_api("chat_completions")


def lookup_sync(query: str) -> str:
    return httpx.get(URL, params={"query": query}, timeout=None).text


async def lookup(query: str) -> str:
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.get(URL, params={"query": query})).text


async def run(agent, session):
    if WAY != "cancel" and os.environ["CASE_STREAM"] == "0":
        return (await Runner.run(agent, QUESTION, session=session)).final_output
    result = Runner.run_streamed(agent, QUESTION, session=session)
    if WAY == "cancel":
        asyncio.get_running_loop().call_later(TIMEOUT_S, result.cancel)
    async for _ in result.stream_events():
        pass
    if result.final_output is None:
        raise TimeoutError("cancelled by the timer")
    return result.final_output


async def main():
    limit = {"timeout": TIMEOUT_S, "timeout_behavior": "raise_exception"} if WAY == "tool-timeout" else {}
    tool = function_tool(lookup if os.environ["CASE_TOOL"] == "async" else lookup_sync, **limit)
    agent = Agent(name="researcher", model=MODEL, tools=[tool])
    if os.environ["CASE_AGENT"] == "sub":
        agent = Agent(name="triage", model=MODEL, handoffs=[agent])
    session, end = SQLiteSession("1"), {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    try:
        async with asyncio.timeout(TIMEOUT_S if WAY == "asyncio-timeout" else None):
            await run(agent, session)
    except Exception as e:
        end |= {"outcome": "timeout" if isinstance(e, TimeoutError | ToolTimeoutError) else "error", "error": repr(e)}
    kinds = [item.get("type") for item in await session.get_items()]
    calls = kinds.count("function_call") - kinds.count("function_call_output")
    print(json.dumps(end | {"left": {"messages": len(kinds), "open_tool_calls": calls}}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
