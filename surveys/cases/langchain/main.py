import asyncio
import json
import os
import sys

import httpx
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from openai import APITimeoutError

URL, WAY, TIMEOUT_S = os.environ["CASE_TOOL_URL"], os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
llm = ChatOpenAI(model=os.environ["OPENAI_MODEL"], timeout=TIMEOUT_S if WAY == "model-timeout" else None)
client = httpx.AsyncClient(timeout=None)


def lookup_sync(query: str) -> str:
    """Look something up."""
    return httpx.get(URL, params={"query": query}, timeout=None).text


async def lookup(query: str) -> str:
    """Look something up."""
    return (await client.get(URL, params={"query": query})).text


async def ask_researcher(question: str) -> str:
    """Hand a question to the researcher."""
    researcher = create_agent(llm, [lookup], name="researcher")
    return (await researcher.ainvoke({"messages": [("user", question)]}))["messages"][-1].text


async def main():
    plain = lookup if os.environ["CASE_TOOL"] == "async" else lookup_sync
    tool = ask_researcher if os.environ["CASE_AGENT"] == "sub" else plain
    agent = create_agent(llm, [tool], checkpointer=InMemorySaver())
    agent.step_timeout = TIMEOUT_S if WAY == "step-timeout" else None
    inputs, config = {"messages": [("user", os.environ["CASE_QUESTION"])]}, {"configurable": {"thread_id": "1"}}
    mode, end = "messages" if os.environ["CASE_STREAM"] == "1" else "values", {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    try:
        async with asyncio.timeout(TIMEOUT_S if WAY == "asyncio-timeout" else None):
            async for _ in agent.astream(inputs, config, stream_mode=mode):
                pass
    except Exception as e:
        end |= {"outcome": "timeout" if isinstance(e, TimeoutError | APITimeoutError) else "error", "error": repr(e)}
    seen = agent.get_state(config).values["messages"]
    calls = sum(len(getattr(m, "tool_calls", ())) - (m.type == "tool") for m in seen)
    print(json.dumps(end | {"left": {"messages": len(seen), "open_tool_calls": calls}}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
