# An AutoGen agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMessageTermination, TimeoutTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_core import CancellationToken
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


def lookup(query: str) -> str:
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


async def lookup_async(query: str) -> str:
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


timeout_s, way = float(env["CASE_TIMEOUT_S"]), env["CASE_WAY"]
can = {"vision": False, "function_calling": True, "json_output": False, "structured_output": False, "family": "unknown"}
model = OpenAIChatCompletionClient(model=env["OPENAI_MODEL"], base_url=env["OPENAI_BASE_URL"], model_info=can)
about = {"model_client": model, "reflect_on_tool_use": True, "model_client_stream": env["CASE_STREAM"] == "1"}
tool = FunctionTool(lookup_async if env["CASE_TOOL"] == "async" else lookup, "Looks up facts about a query.", "lookup")
researcher = AssistantAgent("researcher", tools=[tool], description="Researches a question.", **about)
agent = researcher if env["CASE_AGENT"] == "single" else AssistantAgent("outer", tools=[AgentTool(researcher)], **about)


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    token, ends = CancellationToken(), TextMessageTermination(agent.name) | TimeoutTermination(timeout_s)
    run = RoundRobinGroupChat([agent], termination_condition=ends) if way == "timeout-termination" else agent
    if way == "cancellation-token":
        asyncio.get_running_loop().call_later(timeout_s, token.cancel)
    try:
        async with asyncio.timeout(timeout_s if way == "asyncio-timeout" else None):
            *_, result = [part async for part in run.run_stream(task=env["CASE_QUESTION"], cancellation_token=token)]
        text, reason = result.messages[-1].to_text(), result.stop_reason
    except (Exception, asyncio.CancelledError) as error:
        text, reason = None, f"{type(error).__name__}: {error}"
    ended = str(reason).startswith(("TimeoutError", "CancelledError", "Timeout of"))
    outcome = "timeout" if ended else "error" if text is None else "answer"
    seen = await agent.model_context.get_messages()
    calls = sum(len(m.content) * (1 if m.type == "AssistantMessage" else -1) for m in seen if type(m.content) is list)
    left = {"messages": len(seen), "open_tool_calls": calls}
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
