"""A module that asks a model, or embeds its documents, while it is imported."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from own_runs import graph_of, simulated
from users_modules import users_module

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.network.replacements import Replacements
from docmind_lab.systems.own.tokenizer import provide_vocabularies

MODULE = users_module(
    """
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

store = InMemoryVectorStore.from_texts(["wombats dig", "quolls hunt"], OpenAIEmbeddings())
motto = ChatOpenAI(model="gpt-4o").invoke("A motto?").text
asked = {"query": "tides", "max_results": 2}
searched = requests.post("https://api.tavily.com/search", json=asked, timeout=9).json()
""",
    found='[each.page_content for each in store.similarity_search(state["question"], k=1)]',
)


def test_what_a_module_asks_as_it_is_imported_is_answered_by_simulated_services(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "embeds_as_it_is_imported.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    graph, asked = "embeds_as_it_is_imported:graph", [{"question": "Which hunt?"}]
    study = dl.compare(dl.graph(graph, asked), alternatives="unguarded,A", runs=2)
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    imported = sys.modules["embeds_as_it_is_imported"]
    assert imported.motto
    assert len(imported.store.store) == len(imported.searched["results"]) == 2


ASKS_ANOTHER = users_module(
    """
names = httpx.get("https://made-up.example/names").json()["names"]
more = requests.get("https://made-up.example/names", timeout=5).json()["names"]
""",
    found="names + more",
)


@pytest.mark.full
def test_a_users_endpoints_answer_what_a_module_asks_as_it_is_imported(tmp_path: Path) -> None:
    file, rows = tmp_path / "asks_another_as_it_is_imported.py", tmp_path / "rows.toml"
    file.write_text(ASKS_ANOTHER)
    rows.write_text('[[endpoint]]\nhost = "made-up.example"\njson = { names = ["quoll"] }\n')
    study = dl.compare(
        dl.graph(f"{file}:graph", [{"question": "Who?"}]),
        alternatives="A",
        world=dl.World(endpoints=rows),
        runs=1,
        workers=1,
    )
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    assert sys.modules[file.stem].names == ["quoll"]


@pytest.mark.parametrize("ending", ["name = input('Your name: ')", "raise SystemExit(3)", "open('no-such-file')"])
def test_a_graph_runs_though_its_module_fails_after_it_made_it_and_the_summary_says_so(
    ending: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / f"goes_on_{request.node.callspec.indices['ending']}.py"
    text = users_module(tail=ending)
    file.write_text(text)
    study = dl.compare(dl.graph(f"{file}:graph", [{"question": "Who?"}]), alternatives="A", runs=1)
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    (system,) = study.manifest["systems"].values()
    (note,) = system["notes"]
    assert "the module failed after it had made the graph, which ran all the same" in note
    assert f"at {file.name}:{len(text.splitlines())}" in note


def test_a_module_that_fails_before_it_makes_its_graph_is_refused_and_left_out_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "fails_before_its_graph.py"
    file.write_text("name = input('Your name: ')\ngraph = None\n")
    with pytest.raises(ConfigurationError, match="does not import: EOFError: nobody answers input"):
        dl.compare(dl.graph(f"{file}:graph", [{"question": "Who?"}]), alternatives="A", runs=1)
    assert file.stem not in sys.modules


# ---- a checkpointer that keeps its threads outside the process is reached in real time


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


def compared_with_file(tmp_path: Path, attribute: str, alternatives: str) -> Any:
    file = tmp_path / "threads.db"
    (tmp_path / f"{attribute}_graph.py").write_text(GRAPH.format(file=file))
    study = dl.compare(
        dl.graph(f"{tmp_path}/{attribute}_graph.py:{attribute}", ["When is high water?"]),
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
    study, file = compared_with_file(tmp_path, attribute, alternatives)
    assert study.runs["outcome"].astype("str").tolist() == ["answered"] * 8
    assert (study.runs["returned_at_s"] < 20.0).all()
    assert (study.events["event"].astype("str") == "checkpoint_put").sum() > 8
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)


# ---- tokenizers whose files are not on this machine


@pytest.fixture(autouse=True)
def nothing_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tiktoken import registry

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(registry, "ENCODINGS", {})


@pytest.mark.parametrize(
    "count",
    [
        lambda text: len(OpenAIEmbeddings().embed_query(text)),
        lambda text: ChatOpenAI(model="gpt-4o").get_num_tokens(text),
    ],
    ids=["for embeddings", "to count tokens"],
)
def test_a_run_needs_no_download_of_a_tokenizer(count: Callable[[str], int]) -> None:
    graph = graph_of(count=lambda state: {"answer": count(state["question"])})
    assert {run.run.outcome for run in simulated(graph, alternatives="unguarded,A")} == {"answered"}


def test_a_made_up_tokenizer_gives_the_text_back_and_is_forgotten_with_the_hooks(tmp_path: Path) -> None:
    import tiktoken
    from tiktoken import registry

    hooks = Replacements()
    provide_vocabularies(hooks, lambda: True)
    text = "A deadline — the moment by which an answer has to be there."
    encoding = tiktoken.get_encoding("cl100k_base")
    assert encoding.decode(encoding.encode(text)) == text
    assert len(encoding.encode(text)) < len(text) / 2
    hooks.remove()
    assert registry.ENCODINGS == {}
    assert list(tmp_path.iterdir()) == []
