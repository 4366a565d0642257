"""`assert_keeps_deadline` and `docmind-lab doctor --graph`: what they say, and with which exit code."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands_here
import graphs_to_mutate
import pandas as pd
import pytest
from hung_graphs import one_node
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError, GraphError
from docmind_lab.experiments.assertions import assert_keeps_deadline
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.examination import Examined, Trial
from docmind_lab.views.cli import main

INPUT = {"question": "What is yield?"}


def slow_agent() -> Any:
    def look_up(query: str) -> str:
        """Look something up, slowly."""
        time.sleep(3.0)
        return query

    return create_agent(ChatOpenAI(model="gpt-4o", api_key="k", max_retries=0), [look_up])


def test_the_failure_names_the_call_that_ate_the_time_and_the_remedy_and_a_slack_allows_it() -> None:
    system = dl.graph(slow_agent(), ["What is yield?"])
    with pytest.raises(AssertionError) as failed:
        assert_keeps_deadline(system, decision_timeout_s=5.0, alternatives="A")
    said = str(failed.value)
    assert "No alternative keeps the 5 s deadline" in said
    assert "call tool/tools/2.0.1 in node tools, which began at" in said
    assert "the caller waited 2.700 s past the deadline" in said, "nine tenths of the tool's 3 s"
    assert "wait with asyncio.sleep" in said
    assert not assert_keeps_deadline(system, decision_timeout_s=5.0, slack_s=3.0, alternatives="A").overruns


def test_a_node_that_only_the_second_input_reaches_is_looked_at() -> None:
    def node(state: Any) -> dict[str, Any]:
        if state["question"] == "slow":
            time.sleep(2.0)
        return {"answer": "a"}

    report = dl.doctor(dl.graph(one_node(node), [INPUT]), decision_timeout_s=5.0, alternatives="A")
    assert report.keeps
    both = dl.graph(one_node(node), [INPUT, {"question": "slow"}])
    report = dl.doctor(both, decision_timeout_s=5.0, alternatives="A")
    assert [(finding.node, finding.kind) for finding in report.findings] == [("only", "code")]


def test_a_graph_that_fails_by_itself_has_no_verdict() -> None:
    def node(state: Any) -> dict[str, Any]:
        raise KeyError("absent")

    with pytest.raises(GraphError, match="fails without any deadline, with KeyError"):
        dl.doctor(dl.graph(one_node(node), [INPUT]))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decision_timeout_s": 0.0}, "decision timeout"),
        ({"slack_s": -1.0}, "slack_s"),
        ({"alternatives": "Z"}, "unknown alternative 'Z'"),
        ({"alternatives": ""}, "alternatives"),
        ({"alternatives": "A+hedge:2s"}, "hedge:2s"),
    ],
)
def test_values_that_cannot_be_used_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        dl.doctor(dl.graph(graphs_to_mutate.made(), [INPUT]), **options)


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """A function that runs `docmind-lab doctor --graph …` here: exit code, output, errors."""
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text(json.dumps(INPUT) + "\n", encoding="utf-8")

    def run(*words: str) -> tuple[int, str, str]:
        return commands_here.said(capsys, "doctor", *(word.replace("INPUTS", str(inputs)) for word in words))

    return run


OF_A_GRAPH = ("--inputs", "INPUTS", "--decision-timeout", "5", "--alternatives", "C")


def test_doctor_ends_with_0_for_a_deadline_that_is_kept_and_else_with_1_and_the_findings(
    doctor: Callable[..., tuple[int, str, str]],
) -> None:
    code, out, _ = doctor("--graph", "graphs_to_mutate:plain", *OF_A_GRAPH)
    assert (code, "is kept by C" in out) == (0, True)
    code, out, _ = doctor("--graph", "graphs_to_mutate:blocking", *OF_A_GRAPH)
    assert code == 1
    assert "node answer: async in name only" in out
    assert "(defeats C)" in out
    code, out, _ = doctor("--graph", "graphs_to_mutate:blocking", *OF_A_GRAPH, "--json")
    said = json.loads(out)
    assert (code, said["keeps"]) == (1, False)
    (blocked,) = [finding for finding in said["findings"] if finding["kind"] == "blocks_loop"]
    assert blocked["evidence"][0]["run_id"]
    assert blocked["evidence"][0]["command"].startswith("docmind-lab compare --graph graphs_to_mutate:blocking")
    assert said["nodes"][0]["worst_case"]["took_s"] is None, "JSON knows no infinity"


# ---- the command that is printed with a finding measures the same run again

MODULE = """
from dataclasses import dataclass
from typing import TypedDict

import httpx
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt


@dataclass
class Context:
    user: str


class State(TypedDict, total=False):
    question: str
    found: str


def make_store():
    store = InMemoryStore()
    store.put(("users",), "ada", {"city": "Perth"})
    return store


def look(state: State, runtime: Runtime[Context]) -> State:
    city = runtime.store.get(("users",), runtime.context.user).value["city"]
    found = httpx.get("https://made-up.example/places", params={"city": city}).json()["name"]
    return {"found": found + interrupt("Really?")["word"]}


graph = StateGraph(State, context_schema=Context).add_node(look).add_edge(START, "look").compile()
"""
ENDPOINTS = """
[[endpoint]]
host = "made-up.example"
json = { name = "{query.city} it is" }
"""


def test_the_command_of_a_trial_has_all_that_was_given_and_measures_the_same_run(tmp_path: Path) -> None:
    folder = tmp_path / "with a space"
    folder.mkdir()
    file, inputs, rows = folder / "repeats_it.py", folder / "inputs.jsonl", folder / "rows.toml"
    file.write_text(MODULE)
    inputs.write_text('{"question": "Where?"}\n')
    rows.write_text(ENDPOINTS)
    given: dict[str, Any] = {"context": {"user": "ada"}, "config": {"recursion_limit": 9}, "resume": [{"word": "yes"}]}
    graph = dl.graph(f"{file}:graph", str(inputs), store=f"{file}:make_store", **given)
    bench = TrialBench(Examined(graph, "fast", str(rows)), seed=3)
    with contextlib.closing(bench):
        (question,) = bench.questions()
        trial = Trial("A", 5.0, question.id)
        measured = bench.measure(trial)
        words = shlex.split(bench.command(trial))
    assert measured.run.outcome == "answered"
    with pytest.raises(SystemExit) as ended:
        main([*words[1:], "--workers", "1", "--out", str(tmp_path / "again"), "--json"])
    assert ended.value.code == 0
    again = pd.read_parquet(tmp_path / "again" / "runs.parquet").iloc[0]
    assert (again["run_id"], again["outcome"]) == (measured.run.run_id, "answered")
    assert again["returned_at_s"] == measured.run.returned_at_s
    assert words[words.index("--resume") + 1] == json.dumps({"word": "yes"}, separators=(",", ":"))


def test_what_is_in_memory_has_a_placeholder_in_the_command() -> None:
    graph = dl.graph("graphs_to_mutate:plain", [INPUT], store=make_store)
    bench = TrialBench(Examined(graph, "fast"), seed=3)
    with contextlib.closing(bench):
        (question,) = bench.questions()
        words = shlex.split(bench.command(Trial("A", 5.0, question.id)))
    assert words[words.index("--inputs") + 1] == "inputs.jsonl"
    assert words[words.index("--store") + 1] == "module:attribute"


def make_store() -> object:
    """Not called: no run goes on."""
    raise NotImplementedError
