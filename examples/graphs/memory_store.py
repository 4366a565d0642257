"""A conversation that remembers users in the store that the server gives: the graph is compiled without one."""

import uuid

from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

model = ChatOpenAI(model="gpt-4.1-mini")


def call_model(state: MessagesState, config: RunnableConfig, *, store: BaseStore):
    namespace = ("memories", config["configurable"].get("user_id", "somebody"))
    known = "\n".join(item.value["text"] for item in store.search(namespace))
    store.put(namespace, str(uuid.uuid4()), {"text": state["messages"][-1].content})
    return {"messages": [model.invoke([("system", f"You know of the user: {known}"), *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_node("call_model", call_model)
builder.add_edge(START, "call_model")
graph = builder.compile()
