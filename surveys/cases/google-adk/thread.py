# What a cut leaves in a session: CASE_STEP=cut asks and is cut, CASE_STEP=next goes on with what is there.
import asyncio
import json
from os import environ as env

import httpx
from google.adk.agents import LlmAgent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import Runner
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import UserContent

IS_CUT = env["CASE_STEP"] == "cut" and env["CASE_WAY"] != "kill"
WHOSE = {"app_name": "lab", "user_id": "user", "session_id": "1"}


def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return httpx.get(env["CASE_TOOL_URL"], params={"query": query}, timeout=None).text


async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    async with httpx.AsyncClient(timeout=None) as client:
        return (await client.get(env["CASE_TOOL_URL"], params={"query": query})).text


lookup_async.__name__ = "lookup"


async def main():
    tools = [lookup_async if env["CASE_TOOL"] == "async" else lookup]
    agent = LlmAgent(name="researcher", model=LiteLlm("openai/" + env["OPENAI_MODEL"]), tools=tools)
    warm = LlmAgent(name="warm", model=LiteLlm("openai/warm", mock_response="Ready."), tools=tools)
    sessions = SqliteSessionService(env["CASE_THREAD"])
    async for _ in Runner(agent=warm, app_name="warm", session_service=sessions, auto_create_session=True).run_async(
        user_id="user",
        session_id="warm",
        new_message=UserContent("Ready?"),  # a first run imports much
    ):
        pass
    seen = (await sessions.get_session(**WHOSE) or await sessions.create_session(**WHOSE)).events
    open_calls = sum(len(event.get_function_calls()) - len(event.get_function_responses()) for event in seen)
    messages = len([event for event in seen if event.content])
    print(json.dumps({"event": "start", "messages": messages, "open_tool_calls": open_calls}), flush=True)
    runner, end = Runner(agent=agent, app_name="lab", session_service=sessions), {"event": "end", "outcome": "answer"}
    asked = runner.run_async(user_id="user", session_id="1", new_message=UserContent(env["CASE_QUESTION"]))
    try:
        async with asyncio.timeout(float(env["CASE_TIMEOUT_S"]) if IS_CUT else None):
            last = [event async for event in asked][-1]
        if not (last.content and last.content.parts[0].text):
            end |= {"outcome": "error", "error": str(last.error_code)}
    except Exception as error:
        end |= {"outcome": "timeout" if isinstance(error, TimeoutError) else "error", "error": repr(error)}
    print(json.dumps(end), flush=True)


asyncio.run(main())
