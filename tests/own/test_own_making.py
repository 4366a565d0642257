"""A module that asks a model, or embeds its documents, while it is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments.lint import lint_graph

MODULE = """
from typing import TypedDict

from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from langgraph.graph import START, StateGraph

store = InMemoryVectorStore.from_texts(["wombats dig", "quolls hunt"], OpenAIEmbeddings())
motto = ChatOpenAI(model="gpt-4o").invoke("A motto?").text


class State(TypedDict, total=False):
    question: str
    found: list[str]


def look(state: State) -> State:
    return {"found": [each.page_content for each in store.similarity_search(state["question"], k=1)]}


graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
"""


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"embeds_as_it_is_{request.param}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.full
@pytest.mark.parametrize("module", ["linted"], indirect=True)
def test_the_lint_too_answers_what_a_module_asks_as_it_is_imported(module: str) -> None:
    report = lint_graph(f"{module}:graph", [{"question": "Which hunt?"}], alternatives="A")
    assert [verdict.alternative for verdict in report.verdicts] == ["A"]


@pytest.mark.parametrize("module", ["compared"], indirect=True)
def test_what_a_module_asks_as_it_is_imported_is_answered_by_simulated_services(module: str) -> None:
    study = dl.compare(
        graph=f"{module}:graph", inputs=[{"question": "Which hunt?"}], runs=2, alternatives="unguarded,A"
    )
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    imported = sys.modules[module]
    assert imported.motto
    assert len(imported.store.store) == 2


ASKS_ANOTHER = """
from typing import TypedDict

import httpx
import requests
from langgraph.graph import START, StateGraph

names = httpx.get("https://made-up.example/names").json()["names"]
more = requests.get("https://made-up.example/names", timeout=5).json()["names"]


class State(TypedDict, total=False):
    question: str
    found: list[str]


def look(state: State) -> State:
    return {"found": names + more}


graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
"""


@pytest.mark.full
def test_a_users_endpoints_answer_what_a_module_asks_as_it_is_imported(tmp_path: Path) -> None:
    file, rows = tmp_path / "asks_another_as_it_is_imported.py", tmp_path / "rows.toml"
    file.write_text(ASKS_ANOTHER)
    rows.write_text('[[endpoint]]\nhost = "made-up.example"\njson = { names = ["quoll"] }\n')
    study = dl.compare(
        graph=f"{file}:graph", inputs=[{"question": "Who?"}], runs=1, alternatives="A", endpoints=rows, workers=1
    )
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    assert sys.modules[file.stem].names == ["quoll"]


GOES_ON_AFTERWARDS = """
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    question: str


graph = StateGraph(State).add_node("only", lambda state: {}).add_edge(START, "only").compile()
name = input('Your name: ')
"""


@pytest.mark.parametrize("ending", ["name = input('Your name: ')", "raise SystemExit(3)", "open('no-such-file')"])
def test_a_graph_runs_though_its_module_fails_after_it_made_it_and_the_summary_says_so(
    ending: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / f"goes_on_{request.node.callspec.indices['ending']}.py"
    file.write_text(GOES_ON_AFTERWARDS.replace("name = input('Your name: ')", ending))
    study = dl.compare(graph=f"{file}:graph", inputs=[{"question": "Who?"}], runs=1, alternatives="A")
    assert set(study.runs["outcome"].astype("str")) == {"answered"}
    (system,) = study.manifest["systems"].values()
    (note,) = system["notes"]
    assert "the module failed after it had made the graph, which ran all the same" in note
    assert f"at {file.name}:12" in note


def test_a_module_that_fails_before_it_makes_its_graph_is_refused_and_left_out_of_the_process(tmp_path: Path) -> None:
    file = tmp_path / "fails_before_its_graph.py"
    file.write_text("name = input('Your name: ')\ngraph = None\n")
    with pytest.raises(ConfigurationError, match="does not import: EOFError: nobody answers input"):
        dl.compare(graph=f"{file}:graph", inputs=[{"question": "Who?"}], runs=1, alternatives="A")
    assert file.stem not in sys.modules
