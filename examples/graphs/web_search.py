"""A question that is answered from a web search, by Tavily's own client in a plain node."""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from tavily import TavilyClient

model = ChatOpenAI(model="gpt-4.1-mini", max_retries=0)


class State(TypedDict):
    question: str
    results: list[dict]
    answer: str


def search(state: State):
    return {"results": TavilyClient(api_key="tvly-any").search(state["question"], max_results=3)["results"]}


def answer(state: State):
    found = "\n".join(f"{result['url']}: {result['content']}" for result in state["results"])
    return {"answer": model.invoke(f"Answer {state['question']} from:\n{found}").content}


builder = StateGraph(State)
builder.add_sequence([search, answer])
builder.add_edge(START, "search")
builder.add_edge("answer", END)
graph = builder.compile()
