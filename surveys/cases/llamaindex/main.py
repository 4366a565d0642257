# A LlamaIndex agent with one tool, which CASE_WAY ends after CASE_TIMEOUT_S.
import asyncio
import json
import sys
from os import environ as env

import httpx
import openai.resources  # noqa: F401  (which the client else imports in its first call)
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from workflows.errors import WorkflowCancelledByUser, WorkflowTimeoutError

client, async_client = httpx.Client(timeout=None), httpx.AsyncClient(timeout=None)


def lookup(query: str) -> str:
    return client.get(env["CASE_TOOL_URL"], params={"query": query}).text


async def lookup_async(query: str) -> str:
    return (await async_client.get(env["CASE_TOOL_URL"], params={"query": query})).text


timeout_s, way, streams = float(env["CASE_TIMEOUT_S"]), env["CASE_WAY"], env["CASE_STREAM"] == "1"
limit = timeout_s if way == "workflow-timeout" else None
base_url, model = env["OPENAI_BASE_URL"], env["OPENAI_MODEL"]
llm = OpenAILike(model=model, api_base=base_url, is_chat_model=True, is_function_calling_model=True)
about = {"llm": llm, "system_prompt": "Use your tool, then answer.", "streaming": streams, "timeout": limit}
tool = FunctionTool.from_defaults(lookup_async if env["CASE_TOOL"] == "async" else lookup, name="lookup")
researcher = FunctionAgent(name="researcher", description="Researches a question.", tools=[tool], **about)
manager = FunctionAgent(name="manager", description="Delegates.", can_handoff_to=["researcher"], **about)
workflow = AgentWorkflow(agents=[manager, researcher], root_agent="manager", timeout=limit)
agent, memory = workflow if env["CASE_AGENT"] == "sub" else researcher, ChatMemoryBuffer.from_defaults()


async def main() -> None:
    print(json.dumps({"event": "start"}), flush=True)
    outcome, text, reason = "answer", None, None
    try:
        async with asyncio.timeout(timeout_s if way == "asyncio-timeout" else None):
            handler = agent.run(env["CASE_QUESTION"], memory=memory)
            if way == "cancel-run":
                asyncio.get_running_loop().call_later(timeout_s, lambda: asyncio.ensure_future(handler.cancel_run()))
            _ = [event async for event in handler.stream_events()] if streams else None
            text = str(await handler)
    except Exception as error:
        ended = isinstance(error, TimeoutError | WorkflowTimeoutError | WorkflowCancelledByUser)
        outcome, reason = "timeout" if ended else "error", f"{type(error).__name__}: {error}"
    seen = await memory.aget_all()
    calls = sum(block.block_type == "tool_call" for message in seen for block in message.blocks)
    left = {"messages": len(seen), "open_tool_calls": calls - sum(message.role == "tool" for message in seen)}
    print(json.dumps({"event": "end", "outcome": outcome, "text": text, "error": reason, "left": left}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
