# What a cut leaves in a history: CASE_STEP=cut asks and is cut, CASE_STEP=next goes on with what is there.
# Pydantic AI has no store; the messages of a run that failed are those that capture_run_messages gives.
import asyncio
import json
import os
from pathlib import Path

import httpx
from pydantic_ai import Agent, ModelMessagesTypeAdapter, capture_run_messages
from pydantic_ai.models.openai import OpenAIChatModel

URL, TIMEOUT_S, THREAD = (
    os.environ["CASE_TOOL_URL"],
    float(os.environ["CASE_TIMEOUT_S"]),
    Path(os.environ["CASE_THREAD"]),
)
IS_CUT = os.environ["CASE_STEP"] == "cut" and os.environ["CASE_WAY"] != "kill"
agent = Agent(OpenAIChatModel(os.environ["OPENAI_MODEL"]))

if os.environ["CASE_TOOL"] == "sync":

    @agent.tool_plain
    def lookup(query: str) -> str:
        return httpx.get(URL, params={"query": query}, timeout=None).text
else:

    @agent.tool_plain
    async def lookup(query: str) -> str:
        async with httpx.AsyncClient(timeout=None) as client:
            return (await client.get(URL, params={"query": query})).text


async def main():
    history = ModelMessagesTypeAdapter.validate_json(THREAD.read_bytes()) if THREAD.exists() else []
    kinds = [part.part_kind for message in history for part in message.parts]
    open_calls = kinds.count("tool-call") - kinds.count("tool-return")
    print(json.dumps({"event": "start", "messages": len(history), "open_tool_calls": open_calls}), flush=True)
    end = {"event": "end", "outcome": "answer"}
    with capture_run_messages() as messages:
        try:
            async with asyncio.timeout(TIMEOUT_S if IS_CUT else None):
                await agent.run(os.environ["CASE_QUESTION"], message_history=history)
        except Exception as e:
            end |= {"outcome": "timeout" if isinstance(e, TimeoutError) else "error", "error": repr(e)}
        THREAD.write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
    print(json.dumps(end), flush=True)


asyncio.run(main())
