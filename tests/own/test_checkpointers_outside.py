"""A user's graph whose checkpointer keeps its threads outside the process: it is reached in real time (agents.md 2)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import docmind_lab as dl

GRAPH = """
import sqlite3
from contextlib import asynccontextmanager

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


async def ask(state):
    return {{"messages": [await ChatOpenAI(model="any", api_key="none").ainvoke(state["messages"])]}}


def ask_in_a_thread(state):
    return {{"messages": [ChatOpenAI(model="any", api_key="none").invoke(state["messages"])]}}


@asynccontextmanager
async def make_async():
    async with AsyncSqliteSaver.from_conn_string("{file}") as saver:
        yield StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile(saver)


saver = SqliteSaver(sqlite3.connect("{file}", check_same_thread=False))
blocking = StateGraph(MessagesState).add_node("ask", ask_in_a_thread).add_edge(START, "ask").compile(saver)
"""


def compared(tmp_path: Path, attribute: str, alternatives: str) -> Any:
    file = tmp_path / "threads.db"
    (tmp_path / f"{attribute}_graph.py").write_text(GRAPH.format(file=file))
    study = dl.compare(
        graph=f"{tmp_path}/{attribute}_graph.py:{attribute}",
        inputs=["When is high water?"],
        alternatives=alternatives,
        runs=2,
        workers=1,
    )
    return study, file


# LangGraph's blocking one refuses the async methods that C and E call.
@pytest.mark.parametrize(
    ("attribute", "alternatives"), [("make_async", "unguarded,A,C,E"), ("blocking", "unguarded,A,B,D")]
)
def test_its_runs_are_answered_in_virtual_time_and_its_threads_are_deleted(
    tmp_path: Path, attribute: str, alternatives: str
) -> None:
    study, file = compared(tmp_path, attribute, alternatives)
    assert study.runs["outcome"].astype("str").tolist() == ["answered"] * 8
    assert (study.runs["returned_at_s"] < 20.0).all()
    assert (study.events["event"].astype("str") == "checkpoint_put").sum() > 8
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
