"""A graph whose nodes read who asks from the run's context."""

from dataclasses import dataclass

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime


@dataclass
class Context:
    user_name: str
    model: str = "gpt-4.1-mini"


def answer(state: MessagesState, runtime: Runtime[Context]):
    model = ChatOpenAI(model=runtime.context.model)
    return {"messages": [model.invoke([("system", f"You talk to {runtime.context.user_name}."), *state["messages"]])]}


builder = StateGraph(MessagesState, context_schema=Context)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
graph = builder.compile()
