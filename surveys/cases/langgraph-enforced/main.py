import json
import os
import sys

import httpx
import httpx2
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openai import APITimeoutError

from docmind_lab.core.deadlines import Deadline, deadline_scope
from docmind_lab.network import Httpx2Transport, HttpxTransport

# Every read and write of these clients takes no longer than what is left of the deadline in force.
model_client, tool_client = httpx2.Client(transport=Httpx2Transport()), httpx.Client(transport=HttpxTransport())
llm = ChatOpenAI(model=os.environ["OPENAI_MODEL"], http_client=model_client, max_retries=0)


def lookup(query: str) -> str:
    """Look something up."""
    return tool_client.get(os.environ["CASE_TOOL_URL"], params={"query": query}, timeout=None).text


def researcher(question: str) -> str:
    """Hand a question to the researcher."""
    return build(lookup).invoke({"messages": [("user", question)]})["messages"][-1].text


def build(tool, saver=None):
    def agent(state: MessagesState):
        return {"messages": [llm.bind_tools([tool]).invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("agent", agent).add_node("tools", ToolNode([tool]))
    graph.set_entry_point("agent").add_edge("tools", "agent")
    return graph.add_conditional_edges("agent", tools_condition).compile(saver)


def main():
    graph = build(researcher if os.environ["CASE_AGENT"] == "sub" else lookup, InMemorySaver())
    inputs, config = {"messages": [("user", os.environ["CASE_QUESTION"])]}, {"configurable": {"thread_id": "1"}}
    mode, end = "messages" if os.environ["CASE_STREAM"] == "1" else "values", {"event": "end", "outcome": "answer"}
    print(json.dumps({"event": "start"}), flush=True)
    try:
        with deadline_scope(Deadline.after(float(os.environ["CASE_TIMEOUT_S"]))):
            for _ in graph.stream(inputs, config, stream_mode=mode):
                pass
    except Exception as e:
        is_late = isinstance(e, APITimeoutError | httpx.TimeoutException | httpx2.TimeoutException)
        end |= {"outcome": "timeout" if is_late else "error", "error": repr(e)}
    seen = graph.get_state(config).values["messages"]
    calls = sum(len(getattr(m, "tool_calls", ())) - (m.type == "tool") for m in seen)
    print(json.dumps(end | {"left": {"messages": len(seen), "open_tool_calls": calls}}), flush=True)
    sys.stdin.read()


main()
