"""Retrieval with embeddings, a grader of documents by structured output, and one rewritten question."""

from typing import Literal, TypedDict

from knowledge import ENTRIES
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

model = ChatOpenAI(model="gpt-4.1-mini")
store = InMemoryVectorStore(OpenAIEmbeddings(model="text-embedding-3-small", check_embedding_ctx_length=False))


class Grade(BaseModel):
    """Whether a document helps with the question."""

    binary_score: Literal["yes", "no"]


class State(TypedDict):
    question: str
    documents: list[Document]
    rewrites: int
    answer: str


def retrieve(state: State):
    if not store.store:
        store.add_texts(list(ENTRIES.values()), ids=list(ENTRIES))
    return {"documents": store.similarity_search(state["question"], k=3)}


def grade(state: State):
    grader = model.with_structured_output(Grade)
    asked = [f"Question: {state['question']}\nDocument: {each.page_content}" for each in state["documents"]]
    grades = grader.batch(asked)
    return {"documents": [d for d, g in zip(state["documents"], grades, strict=True) if g.binary_score == "yes"]}


def rewrite(state: State):
    better = model.invoke(f"Put this question better: {state['question']}").content
    return {"question": better or state["question"], "rewrites": state.get("rewrites", 0) + 1}


def answer(state: State):
    context = "\n".join(document.page_content for document in state["documents"])
    return {"answer": model.invoke(f"Answer from this:\n{context}\n\n{state['question']}").content}


def after_grade(state: State):
    return "answer" if state["documents"] or state.get("rewrites", 0) else "rewrite"


builder = StateGraph(State)
for node in (retrieve, grade, rewrite, answer):
    builder.add_node(node)
builder.add_edge(START, "retrieve")
builder.add_edge("retrieve", "grade")
builder.add_conditional_edges("grade", after_grade, ["rewrite", "answer"])
builder.add_edge("rewrite", "retrieve")
builder.add_edge("answer", END)
graph = builder.compile()
