"""`compare` with a graph of one's own, in Python and on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import graphs_agent
import pytest
from own_runs import QUESTION

import docmind_lab as dl
from docmind_lab.analysis.study import Study

# The command line looks for a graph in the folder that it runs in.
GRAPHS = Path(__file__).parents[1] / "support"


def test_a_live_graph_is_compared_in_this_process_and_the_study_knows_what_it_was() -> None:
    # Thirty runs of a workload that can be found by name would go to other processes.
    study = dl.compare(30.0, 10, graph=graphs_agent.make(), inputs=[QUESTION, "Why?"], alternatives="A,B,D")
    assert len(study.runs) == 30
    assert set(study.runs["outcome"]) == {"answered"}
    assert set(study.runs["question_id"]) == {"001", "002"}
    (name,) = set(study.runs["workload"])
    assert study.manifest["systems"][name]["asked"] == "inputs"
    assert set(study.runs["retries"]) == {"own"}
    assert "10 runs of 2 inputs" in repr(study)
    assert QUESTION not in json.dumps(study.manifest)


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
