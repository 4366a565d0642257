"""The graphs of examples/graphs: each runs as it is, under every alternative, on both clocks (agents.md 7)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flat_compare import compare_by
from often import often

import docmind_lab as dl

# Libraries warn of what they will remove, which is none of ours.
pytestmark = pytest.mark.filterwarnings("default")
FOLDER = Path(__file__).parents[2] / "examples" / "graphs"
NAMES = sorted(json.loads((FOLDER / "langgraph.json").read_text())["graphs"])
ORDINARY = ("anthropic_agent", "async_only", "functional", "human_tools", "map_reduce", "retrieval", "swarm")
# What an input cannot lead to: the grader finds a document at once, so nothing is put better; deepagents brings tools
# for files and a shell that a report does not need.
UNREACHED = {
    "retrieval": {"nodes": ["rewrite"], "tools": []},
    "deep_agent": {"nodes": [], "tools": ["edit_file", "delete", "execute"]},
}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "none")


def compared(name: str, **options: object) -> dl.Study:
    inputs = f"{name}.jsonl"
    asked = sum(bool(line.strip()) for line in Path(inputs).read_text().splitlines())
    return compare_by(**options, graph=f"langgraph.json:{name}", inputs=inputs, runs=asked)  # type: ignore[arg-type]


def check(study: dl.Study, name: str) -> None:
    """Every run was answered, with its tools called; what no run reached is what no input of it leads to."""
    failures = study.runs[["alternative", "outcome", "error_type", "error_node"]].drop_duplicates().to_string()
    assert set(study.runs["outcome"].astype("str")) == {"answered"}, failures
    assert study.manifest.get("never_reached", {"nodes": [], "tools": []}) == UNREACHED.get(
        name, {"nodes": [], "tools": []}
    )
    assert (study.runs["llm_calls"] > 0).all()


def test_there_are_twenty_graphs_and_each_has_inputs() -> None:
    assert len(NAMES) >= 20
    assert all((FOLDER / f"{name}.jsonl").is_file() and (FOLDER / f"{name}.py").is_file() for name in NAMES)


# Often: one of each way in which a graph is built.
@pytest.mark.parametrize("name", often(NAMES, *ORDINARY))
def test_a_graph_of_the_examples_answers_under_every_alternative(name: str) -> None:
    check(compared(name, decision_timeout_s=120, latencies="fast"), name)


@pytest.mark.full
@pytest.mark.wall
@pytest.mark.parametrize("name", NAMES)
def test_a_graph_of_the_examples_answers_over_sockets(name: str) -> None:
    # They take their time here, so every alternative is for those that are often run.
    alternatives = None if name in ORDINARY else "A,C"
    check(compared(name, decision_timeout_s=60, latencies="fast", clock="wall", alternatives=alternatives), name)
