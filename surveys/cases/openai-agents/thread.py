# What a cut leaves in a session: CASE_STEP=cut asks and is cut, CASE_STEP=next goes on with what is there.
import asyncio
import json
import os

import httpx
from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api

URL, TIMEOUT_S = os.environ["CASE_TOOL_URL"], float(os.environ["CASE_TIMEOUT_S"])
IS_CUT = os.environ["CASE_STEP"] == "cut" and os.environ["CASE_WAY"] != "kill"
set_default_openai_api("chat_completions")


def lookup_sync(query: str) -> str:
    return httpx.get(URL, params={"query": query}, timeout=None).text


async def lookup(query: str) -> str:
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.get(URL, params={"query": query})).text


async def main():
    tool = function_tool(lookup if os.environ["CASE_TOOL"] == "async" else lookup_sync)
    agent = Agent(name="researcher", model=os.environ["OPENAI_MODEL"], tools=[tool])
    session, end = SQLiteSession("1", os.environ["CASE_THREAD"]), {"event": "end", "outcome": "answer"}
    kinds = [item.get("type") for item in await session.get_items()]
    open_calls = kinds.count("function_call") - kinds.count("function_call_output")
    print(json.dumps({"event": "start", "messages": len(kinds), "open_tool_calls": open_calls}), flush=True)
    try:
        async with asyncio.timeout(TIMEOUT_S if IS_CUT else None):
            await Runner.run(agent, os.environ["CASE_QUESTION"], session=session)
    except Exception as e:
        end |= {"outcome": "timeout" if isinstance(e, TimeoutError) else "error", "error": repr(e)}
    print(json.dumps(end), flush=True)


asyncio.run(main())
