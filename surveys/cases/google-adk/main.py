# A Google ADK agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from google.adk.agents import LlmAgent, RunConfig
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai.types import UserContent

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


def lookup(query: str) -> str:
    """Looks up facts about a query."""
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


async def lookup_async(query: str) -> str:
    """Looks up facts about a query."""
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


lookup_async.__name__ = "lookup"
timeout_s, way, llm = float(env["CASE_TIMEOUT_S"]), env["CASE_WAY"], LiteLlm("openai/" + env["OPENAI_MODEL"])
tools = [lookup_async if env["CASE_TOOL"] == "async" else lookup]
researcher = LlmAgent(name="researcher", description="Researches a question.", model=llm, tools=tools)
agent = researcher if env["CASE_AGENT"] == "single" else LlmAgent(name="manager", model=llm, sub_agents=[researcher])
agent.timeout = timeout_s if way == "agent-timeout" else None
runner = InMemoryRunner(agent=agent, app_name="lab")
pool = {"max_workers": 4} if way == "tool-thread-pool" else None
config = RunConfig(streaming_mode="sse" if env["CASE_STREAM"] == "1" else None, tool_thread_pool_config=pool)


async def main() -> None:
    warm = LlmAgent(name="warm", model=LiteLlm("openai/warm", mock_response="Ready."), tools=tools)
    await InMemoryRunner(agent=warm, app_name="warm").run_debug("Ready?", quiet=True)  # a first run imports much
    session = await runner.session_service.create_session(app_name="lab", user_id="user")
    options = {"user_id": "user", "session_id": session.id, "run_config": config, "abort_signal": asyncio.Event()}
    print(json.dumps({"event": "start"}), flush=True)
    if way == "abort-signal":
        asyncio.get_running_loop().call_later(timeout_s, options["abort_signal"].set)
    try:
        async with asyncio.timeout(timeout_s if way in ("asyncio-timeout", "tool-thread-pool") else None):
            last = [e async for e in runner.run_async(new_message=UserContent(env["CASE_QUESTION"]), **options)][-1]
        text, reason = last.content and last.content.parts[0].text, last.error_code
    except Exception as error:
        text, reason = None, f"{type(error).__name__}: {error}"
    outcome = "answer" if text else "timeout" if "Timeout" in str(reason) or "ABORTED" in str(reason) else "error"
    seen = (await runner.session_service.get_session(app_name="lab", user_id="user", session_id=session.id)).events
    calls = sum(len(event.get_function_calls()) - len(event.get_function_responses()) for event in seen)
    left = {"messages": len([event for event in seen if event.content]), "open_tool_calls": calls}
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
