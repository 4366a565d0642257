"""A service whose every answer comes by a deadline: FastAPI, a LangGraph graph with a checkpointer, and `enforce`.

    UPSTREAM_URL=http://127.0.0.1:9001 uvicorn app:app

POST /ask           under `enforce`: 200 with the answer, or 206 with what there was at the deadline
POST /ask-timeout   the same graph under asyncio.timeout, for comparison
"""

from __future__ import annotations

import asyncio
import operator
import os
from typing import Annotated, Any, TypedDict

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

import docmind_lab as dl

BUDGET_S = float(os.environ.get("BUDGET_S", "1.0"))
UPSTREAM_URL = os.environ.get("UPSTREAM_URL", "http://127.0.0.1:9001")


class Notes(TypedDict, total=False):
    """What the graph knows. how: which of the upstream's ways to answer is asked for."""

    how: str
    log: Annotated[list[str], operator.add]


class Question(BaseModel):
    """What a client asks, and in which conversation."""

    how: str = "quick"
    thread: str = "t"


client = httpx.Client(timeout=None, limits=httpx.Limits(max_connections=100))


async def plan(state: Notes) -> Notes:
    """Write down what is to be done."""
    return {"log": ["planned"]}


def answer(state: Notes) -> Notes:
    """Ask the upstream with a blocking client, as many services do."""
    return {"log": [client.get(f"{UPSTREAM_URL}/{state['how']}").text]}


builder = StateGraph(Notes)
builder.add_node("plan", plan)
builder.add_node("answer", answer)
builder.add_edge(START, "plan")
builder.add_edge("plan", "answer")
builder.add_edge("answer", END)
graph = builder.compile(checkpointer=InMemorySaver())
agent = dl.enforce(graph, decision_timeout_s=BUDGET_S, alternative="E")

app = FastAPI()


@app.post("/ask")
async def ask(request: Request, question: Question) -> JSONResponse:
    """Answer by the deadline; stop at once when the client leaves."""
    config: Any = {"configurable": {"thread_id": question.thread}}
    given: Notes = {"how": question.how, "log": []}
    result = await agent.ainvoke(given, config, cancel=dl.disconnected(request))
    return JSONResponse(result.state, 200 if result.outcome == "answered" else 206)


@app.get("/pid")
async def pid() -> int:
    """Return the process, for those who stop it."""
    return os.getpid()


@app.post("/ask-timeout")
async def ask_timeout(question: Question) -> JSONResponse:
    """Answer by the deadline as the standard library has it: the caller leaves, and the thread goes on."""
    config: Any = {"configurable": {"thread_id": question.thread}}
    try:
        async with asyncio.timeout(BUDGET_S):
            return JSONResponse(await graph.ainvoke({"how": question.how, "log": []}, config))
    except TimeoutError:
        return JSONResponse({"log": []}, 504)
