import asyncio
import json
import os
import sys

import httpx
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeTimeoutError
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

URL, WAY, TIMEOUT_S = os.environ["CASE_TOOL_URL"], os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
llm, client = ChatOpenAI(model=os.environ["OPENAI_MODEL"]), httpx.AsyncClient(timeout=None)


def lookup_sync(query: str) -> str:
    """Look something up."""
    return httpx.get(URL, params={"query": query}, timeout=None).text


async def lookup(query: str) -> str:
    """Look something up."""
    return (await client.get(URL, params={"query": query})).text


async def researcher(question: str) -> str:
    """Hand a question to the researcher."""
    return (await build(lookup).ainvoke({"messages": [("user", question)]}))["messages"][-1].text


def build(tool, saver=None):
    async def agent(state: MessagesState):
        return {"messages": [await llm.bind_tools([tool]).ainvoke(state["messages"])]}

    timeout = TIMEOUT_S if WAY == "node-timeout" else None
    graph = StateGraph(MessagesState).add_node("agent", agent, timeout=timeout).set_entry_point("agent")
    graph.add_node("tools", ToolNode([tool]), timeout=timeout).add_edge("tools", "agent")
    return graph.add_conditional_edges("agent", tools_condition).compile(saver)


async def main():
    plain = lookup if os.environ["CASE_TOOL"] == "async" else lookup_sync
    graph = build(researcher if os.environ["CASE_AGENT"] == "sub" else plain, InMemorySaver())
    graph.step_timeout = TIMEOUT_S if WAY == "step-timeout" else None
    inputs, config = {"messages": [("user", os.environ["CASE_QUESTION"])]}, {"configurable": {"thread_id": "1"}}
    mode, end = "messages" if os.environ["CASE_STREAM"] == "1" else "values", {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    try:
        async with asyncio.timeout(TIMEOUT_S if WAY == "asyncio-timeout" else None):
            [_ async for _ in graph.astream(inputs, config, stream_mode=mode)]
    except Exception as e:
        end |= {"outcome": "timeout" if isinstance(e, TimeoutError | NodeTimeoutError) else "error", "error": repr(e)}
    seen = graph.get_state(config).values["messages"]
    calls = sum(len(getattr(m, "tool_calls", ())) - (m.type == "tool") for m in seen)
    print(json.dumps(end | {"left": {"messages": len(seen), "open_tool_calls": calls}}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
