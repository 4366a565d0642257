"""An agent with three independent tools, which may be called in one turn, in a graph written by hand."""

from knowledge import lookup, tide_at, weather_at
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

tools = [lookup, weather_at, tide_at]
model = ChatOpenAI(model="gpt-4.1-mini").bind_tools(tools, parallel_tool_calls=True)


def agent(state: MessagesState):
    return {"messages": [model.invoke([("system", "Use your tools before you answer."), *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("agent", agent)
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", tools_condition)
builder.add_edge("tools", "agent")
graph = builder.compile()
