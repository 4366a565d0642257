import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

URL, WAY, TIMEOUT_S = os.environ["CASE_TOOL_URL"], os.environ["CASE_WAY"], float(os.environ["CASE_TIMEOUT_S"])
llm = ChatOpenAI(model=os.environ["OPENAI_MODEL"])


def lookup(query: str) -> str:
    """Look something up."""
    return httpx.get(URL, params={"query": query}, timeout=None).text


def researcher(question: str) -> str:
    """Hand a question to the researcher."""
    return build(lookup).invoke({"messages": [("user", question)]})["messages"][-1].text


def build(tool, saver=None):
    def agent(state: MessagesState):
        return {"messages": [llm.bind_tools([tool]).invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("agent", agent).add_node("tools", ToolNode([tool]))
    graph.set_entry_point("agent").add_edge("tools", "agent")
    return graph.add_conditional_edges("agent", tools_condition).compile(saver)


def run(graph, config):
    inputs = {"messages": [("user", os.environ["CASE_QUESTION"])]}
    for _ in graph.stream(inputs, config, stream_mode="messages" if os.environ["CASE_STREAM"] == "1" else "values"):
        pass


def main():
    graph = build(researcher if os.environ["CASE_AGENT"] == "sub" else lookup, InMemorySaver())
    graph.step_timeout = TIMEOUT_S if WAY == "step-timeout" else None
    config, end = {"configurable": {"thread_id": "1"}}, {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    try:
        if WAY == "thread-future":
            ThreadPoolExecutor(1).submit(run, graph, config).result(timeout=TIMEOUT_S)
        else:
            run(graph, config)
    except Exception as e:
        end |= {"outcome": "timeout" if isinstance(e, TimeoutError) else "error", "error": repr(e)}
    seen = graph.get_state(config).values["messages"]
    calls = sum(len(getattr(m, "tool_calls", ())) - (m.type == "tool") for m in seen)
    print(json.dumps(end | {"left": {"messages": len(seen), "open_tool_calls": calls}}), flush=True)
    sys.stdin.read()


main()
