"""A graph by its reference: what it may be, and one line for what it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import graphs_agent
import httpx
import pytest
from flat_compare import compare_by
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel
from often import often
from own_runs import QUESTION, graph_of

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import compare
from docmind_lab.findings.study import Study
from docmind_lab.systems.own import load_graph, own_graph
from docmind_lab.systems.own.own_kind import graph_named, is_async_only
from docmind_lab.systems.workload_by_name import workload_kind

BUILDER = StateGraph(MessagesState)
BUILDER.add_node("only", lambda state: {})
BUILDER.add_edge(START, "only")


def measure(text: str) -> int:
    """Measure a text."""
    return len(text)


async def made_in_time() -> Any:
    return BUILDER.compile()


def failing() -> Any:
    raise KeyError("OPENAI_API_KEY")


def of_two(model: str, tools: list[str]) -> Any:
    return BUILDER.compile()


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def put(**attributes: Any) -> None:
        made = types.ModuleType("somebodys_app")
        vars(made).update(attributes)
        monkeypatch.setitem(sys.modules, "somebodys_app", made)

    return put


@pytest.mark.parametrize(
    "found",
    [BUILDER.compile(), BUILDER.compile, made_in_time, BUILDER, lambda: BUILDER],
    ids=["graph", "factory", "async", "not compiled", "factory of one not compiled"],
)
def test_a_graph_or_a_function_that_makes_one_is_found(found: Any, module: Callable[..., None]) -> None:
    module(graph=found)
    assert isinstance(load_graph("somebodys_app:graph"), Pregel)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (StateGraph(MessagesState), "does not compile: ValueError: Graph must have an entrypoint"),
        ({"a": 1}, "is a dict, not a LangGraph graph or a function that makes one"),
        (dict, r"is a class \(dict\), not a LangGraph graph"),
        (lambda: 3, "makes a int, not a LangGraph graph"),
        (failing, r"could not be made: KeyError: 'OPENAI_API_KEY' \(at test_own_reference.py:\d+\)"),
        (of_two, "is a function of model, tools; one without arguments, or of the configuration alone, is needed"),
    ],
)
def test_what_is_no_graph_is_told_in_one_line(found: Any, said: str, module: Callable[..., None]) -> None:
    module(graph=found)
    with pytest.raises(ConfigurationError, match=said) as raised:
        load_graph("somebodys_app:graph")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("my_app", "write it as module:attribute, such as my_app:graph"),
        ("no_such_module_anywhere:graph", "module no_such_module_anywhere does not import: ModuleNotFoundError"),
        ("graphs_agent:nothing", "module graphs_agent has no attribute nothing"),
    ],
)
def test_a_reference_that_leads_nowhere_is_told(reference: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_graph(reference)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import json\nfrom json import gone", r"cannot import name 'gone' .*\(at not_imported.py:2\)"),
        ("raise ConnectionRefusedError('nobody is there')", "a row of --endpoints FILE"),
        ("import socket; socket.getaddrinfo('nowhere.invalid', 443)", "a row of --endpoints FILE"),
        ("def of(:", f"this is Python {sys.version_info.major}.{sys.version_info.minor}"),
    ],
)
def test_a_module_that_does_not_import_is_told_with_its_line_or_a_remedy(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "not_imported.py").write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=said):
        load_graph(f"{tmp_path / 'not_imported.py'}:graph")


def test_a_folder_that_an_installed_package_hides_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yaml").mkdir()
    (tmp_path / "yaml" / "state.py").write_text("")
    (tmp_path / "uses_its_folder.py").write_text("from yaml.state import State\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="an installed package yaml hides your folder of that name: put an"):
        load_graph("uses_its_folder.py:graph")


def test_a_file_in_a_folder_imports_from_the_working_directory_and_its_src(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts" / "agent").mkdir(parents=True)
    (tmp_path / "src" / "said_in_src").mkdir(parents=True)
    (tmp_path / "parts" / "said_in_parts.py").write_text("NAME = 'only'\n")
    (tmp_path / "src" / "said_in_src" / "it.py").write_text("def node(state):\n    return {}\n")
    (tmp_path / "parts" / "agent" / "graph_of_parts.py").write_text(
        "from langgraph.graph import START, MessagesState, StateGraph\n"
        "from parts.said_in_parts import NAME\nfrom said_in_src.it import node\n"
        "graph = StateGraph(MessagesState).add_node(NAME, node).add_edge(START, NAME).compile()\n"
    )
    monkeypatch.chdir(tmp_path)
    assert "only" in load_graph("parts/agent/graph_of_parts.py:graph").nodes


def test_a_graph_is_a_workload_by_its_name_and_options_travel_in_it() -> None:
    own = own_graph("graphs_agent:make", ["a"], deadline_key="stop_by", services="own")
    kind = workload_kind(own.workload)
    assert (kind.name, kind.has_server_log, kind.in_this_process) == ("graphs_agent:make", False, False)
    assert kind.roles[:2] == ("model", "tools")
    assert [case.id for case in kind.cases(own.corpus)] == ["001"]


async def wait(state: Any) -> dict[str, Any]:
    return {}


async def look_up(text: str) -> str:
    """Look up a text."""
    return text


def holding(node: Any) -> Any:
    return graph_of(schema=MessagesState, held=node)


@pytest.mark.parametrize(
    ("graph", "async_only"),
    [
        (holding(wait), True),
        (holding(lambda state: {}), False),
        (holding(holding(wait)), True),
        (holding(ToolNode([StructuredTool.from_function(coroutine=look_up)])), True),
        (holding(holding(ToolNode([StructuredTool.from_function(coroutine=look_up)]))), True),
        (holding(ToolNode([StructuredTool.from_function(measure, coroutine=look_up)])), False),
    ],
    ids=["node", "sync node", "node of a subgraph", "tool", "tool of a subgraph", "tool of both forms"],
)
def test_a_graph_with_a_node_or_a_tool_that_has_no_sync_form_is_async_only(graph: Any, async_only: bool) -> None:
    assert is_async_only(graph) is async_only


def test_a_live_graph_has_one_name_and_another_of_the_same_name_another() -> None:
    one, other = graphs_agent.make(), graphs_agent.make()
    names = [own_graph(graph, ["a"]).workload for graph in (one, one, other)]
    assert names[0] == names[1] != names[2]
    assert workload_kind(names[0]).in_this_process


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"graph": None, "inputs": None, "endpoints": "e.toml"}, "endpoints are for a graph of your own"),
        ({"services": "mine"}, "services must be one of simulated, own"),
        ({"services": "own", "clock": "virtual"}, "services: in virtual time nothing is sent"),
        ({"faults": "hang:planner"}, "the graph has no node 'planner'; it has model"),
        ({"alternatives": "A+hedge:2s"}, "for the model calls of the lab's own roles"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        compare_by(**({"runs": 1, "graph": "graphs_agent:make", "inputs": ["a"]} | options))


def test_an_endpoint_of_the_labs_own_systems_is_not_taken_for_the_graphs() -> None:
    settings = Settings(llm={"base_url": "http://127.0.0.1:9/v1"})
    with pytest.raises(ConfigurationError, match=r"llm.base_url names an endpoint of the lab's own systems"):
        compare(dl.graph("graphs_agent:make", ["a"]), world=dl.Live(services="simulated", settings=settings), runs=1)


def test_a_tool_node_with_fallbacks_is_looked_into() -> None:
    tools = ToolNode([StructuredTool.from_function(measure)])
    held = holding(tools.with_fallbacks([RunnableLambda(lambda state: state)], exception_key="error"))
    kind = workload_kind(own_graph(held, ["a"]).workload)
    assert kind.parts["tools"] == ("measure",)
    assert not kind.async_only


# ---- compared, in this process and in workers


def test_a_live_graph_is_compared_in_this_process_and_the_study_knows_what_it_was() -> None:
    # Thirty runs of a workload that can be found by name would go to other processes.
    study = dl.compare(dl.graph(graphs_agent.make(), [QUESTION, "Why?"]), 30.0, alternatives="A,B,D", runs=10)
    assert len(study.runs) == 30
    assert set(study.runs["outcome"]) == {"answered"}
    assert set(study.runs["question_id"]) == {"001", "002"}
    (name,) = set(study.runs["workload"])
    assert study.manifest["systems"][name]["asked"] == "inputs"
    assert set(study.runs["retries"]) == {"own"}
    assert "10 runs of 2 inputs" in repr(study)
    assert QUESTION not in json.dumps(study.manifest)


# The command line looks for a graph in the folder that it runs in.
GRAPHS = Path(__file__).parents[1] / "support"


def on_the_command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-W", "ignore", "-m", "docmind_lab", "compare", *arguments]
    return subprocess.run(program, cwd=GRAPHS, env=dict(os.environ), capture_output=True, text=True, check=False)


@pytest.mark.full
def test_worker_processes_find_a_graph_by_its_reference(tmp_path: Path) -> None:
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text(json.dumps({"question": QUESTION}), encoding="utf-8")
    options = ["--graph", "graphs_mixed:make", "--inputs", str(inputs), "--runs", "5", "--alternatives", "A,C,E"]
    alone = on_the_command_line(*options, "--workers", "1", "--out", str(tmp_path / "one"), "--json")
    several = on_the_command_line(*options, "--workers", "2", "--out", str(tmp_path / "two"), "--json")
    assert (alone.returncode, several.returncode) == (0, 0), alone.stderr + several.stderr
    one, two = (Study.load(tmp_path / name) for name in ("one", "two"))
    assert one.runs.equals(two.runs)
    assert one.calls.equals(two.calls)


EDITED = """
import time
from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict, total=False):
    answer: str

def node(state):
    from pause import PAUSE_S  # when it is called
    time.sleep({seconds} + PAUSE_S)
    return {{"answer": "done"}}

graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
"""


@pytest.mark.parametrize("workers", often((1, 2), 1))
def test_what_is_measured_is_the_code_as_it_stands_in_the_files_now(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    took, ids, beside = [], set(), []
    # Neither, the graph's file, the file of a module that it imports, and neither again.
    for seconds, pause_s in ((1, 0), (1, 0), (2, 0), (2, 3)):
        for name, text in (("edited", EDITED.format(seconds=seconds)), ("pause", f"PAUSE_S = {pause_s}\n")):
            file = tmp_path / f"{name}.py"
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
                # As an editor saves it some time later, whatever the clock of the file system resolves.
                os.utime(file, (1_700_000_000 + len(took), 1_700_000_000 + len(took)))
        study = dl.compare(dl.graph("edited.py:graph", [{}]), 20, alternatives="A", runs=2, workers=workers)
        took.append(study.runs["returned_at_s"].max())
        ids.add(study.manifest["study_id"])
        beside.append(sys.modules["edited"])
    assert took == [1.0, 1.0, 2.0, 5.0]
    assert len(ids) == 3
    assert beside[0] is beside[1], "what has not changed is imported once"
    for name in ("edited", "pause"):
        sys.modules.pop(name, None)


def test_a_study_whose_code_has_changed_since_it_began_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "begun.py").write_text(EDITED.format(seconds=1))
    (tmp_path / "pause.py").write_text("PAUSE_S = 0\n")
    name = own_graph("begun:graph", [{}]).workload
    (tmp_path / "pause.py").write_text("PAUSE_S = 10\n")
    # With another option, since this process has loaded it by its name.
    with pytest.raises(ConfigurationError, match="'begun:graph': its code has changed since the study began; run it"):
        graph_named(f"{name}&deadline_key=at_s")
    del sys.modules["begun"]


def test_a_function_that_answers_for_a_service_is_the_one_in_its_file_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    rows, file = tmp_path / "rows.toml", tmp_path / "answered.py"
    rows.write_text('[[endpoint]]\nhost = "api.example.com"\nfunction = "answered:answer"\n')
    answers: list[int] = []

    def ask(state: Any) -> dict[str, Any]:
        answers.append(httpx.get("https://api.example.com/").json())
        return {"answer": "done"}

    for number in (1, 2):
        file.write_text(f"def answer(request):\n    return {number}\n")
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))
        system = dl.graph(graph_of(ask=ask), [{"question": QUESTION}])
        dl.compare(system, 20, alternatives="A", runs=1, world=dl.World(endpoints=str(rows)))
    assert answers == [1, 2]
    del sys.modules["answered"]
