import asyncio
import json
import os
import sys

import httpx
from pydantic_ai import Agent, ModelTimeoutError, RunContext, capture_run_messages
from pydantic_ai.models.openai import OpenAIChatModel

URL, WAY, TIMEOUT_S = os.environ["CASE_TOOL_URL"], os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
QUESTION, model = os.environ["CASE_QUESTION"], OpenAIChatModel(os.environ["OPENAI_MODEL"])
settings = {"timeout": TIMEOUT_S} if WAY == "model-timeout" else {}
agent, researcher = Agent(model, model_settings=settings), Agent(model, model_settings=settings)
asked = agent if os.environ["CASE_AGENT"] == "single" else researcher

if os.environ["CASE_TOOL"] == "sync":

    @asked.tool_plain
    def lookup(query: str) -> str:
        return httpx.get(URL, params={"query": query}, timeout=None).text
else:

    @asked.tool_plain
    async def lookup(query: str) -> str:
        async with httpx.AsyncClient(timeout=None) as client:
            return (await client.get(URL, params={"query": query})).text


async def ask_researcher(ctx: RunContext, question: str) -> str:
    return (await researcher.run(question, usage=ctx.usage)).output


async def run(timeout):
    if os.environ["CASE_STREAM"] == "0":
        return (await agent.run(QUESTION, timeout=timeout)).output
    async with agent.run_stream(QUESTION, timeout=timeout) as result:
        return [text async for text in result.stream_text()][-1]


async def main():
    if asked is researcher:
        agent.tool(ask_researcher)
    end = {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    with capture_run_messages() as messages:
        try:
            async with asyncio.timeout(TIMEOUT_S if WAY == "asyncio-timeout" else None):
                await run(TIMEOUT_S if WAY == "run-timeout" else None)
        except Exception as e:
            end["outcome"] = "timeout" if isinstance(e, TimeoutError | ModelTimeoutError) else "error"
            end["error"] = repr(e)
    kinds = [part.part_kind for message in messages for part in message.parts]
    left = {"messages": len(messages), "open_tool_calls": kinds.count("tool-call") - kinds.count("tool-return")}
    print(json.dumps(end | {"left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
