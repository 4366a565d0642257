"""The command that the lint prints with a finding measures the same run again."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from docmind_lab.experiments.examination import Trial
from docmind_lab.experiments.lint.bench import TrialBench
from docmind_lab.interfaces.cli import main

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
    bench = TrialBench(
        f"{file}:graph",
        str(inputs),
        deadline_key="deadline_ts",
        profile="fast",
        seed=3,
        context={"user": "ada"},
        config={"recursion_limit": 9},
        store=f"{file}:make_store",
        resume=[{"word": "yes"}],
        endpoints=str(rows),
    )
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
    fixed: dict[str, Any] = {"deadline_key": "deadline_ts", "profile": "fast", "seed": 3, "store": make_store}
    bench = TrialBench("graphs_to_mutate:plain", [{"question": "Why?"}], **fixed)
    with contextlib.closing(bench):
        (question,) = bench.questions()
        words = shlex.split(bench.command(Trial("A", 5.0, question.id)))
    assert words[words.index("--inputs") + 1] == "inputs.jsonl"
    assert words[words.index("--store") + 1] == "module:attribute"


def make_store() -> object:
    """Not called: no run goes on."""
    raise NotImplementedError
