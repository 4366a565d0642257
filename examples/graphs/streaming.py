"""A node that streams its model's words on as they come, and reports its progress."""

from langchain_openai import ChatOpenAI
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph

model = ChatOpenAI(model="gpt-4.1-mini", streaming=True)


def write(state: MessagesState):
    say = get_stream_writer()
    words = []
    for chunk in model.stream(state["messages"]):
        words.append(chunk.content)
        say({"words": len(words)})
    return {"messages": [("assistant", "".join(words))]}


def shorten(state: MessagesState):
    return {"messages": [model.invoke([("system", "Say it in ten words."), *state["messages"]])]}


builder = StateGraph(MessagesState)
builder.add_sequence([write, shorten])
builder.add_edge(START, "write")
graph = builder.compile()
