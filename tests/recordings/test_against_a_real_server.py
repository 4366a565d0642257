"""Measure a real server under a short deadline, replay that under a longer one, measure there, compare (trust 12)."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_openai import ChatOpenAI
from langgraph.graph import MessagesState, StateGraph

import docmind_lab as dl
from docmind_lab.recordings.fidelity import fidelity
from docmind_lab.statistics import share_interval

pytest.importorskip("xllamacpp", reason="llama.cpp's server is not installed: pip install xllamacpp gguf")
pytest.importorskip("gguf", reason="no model of random weights can be made: pip install xllamacpp gguf")

pytestmark = [pytest.mark.wall, pytest.mark.full]

RUNS = 16
SERVE = str(Path(__file__).with_name("serve_tiny_llama.py"))
STEPS = ("plan", "draft", "revise")


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of llama.cpp's server, in a process of its own, with a small model of random weights."""
    model = tmp_path_factory.mktemp("model") / "tiny.gguf"
    with subprocess.Popen([sys.executable, SERVE, str(model)], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        address = json.loads(server.stdout.readline())
        yield f"{address}/v1"
        server.stdin.close()


def graph_at(base_url: str) -> Any:
    """Three steps, each a model call with as many tokens as the input says."""
    model = ChatOpenAI(base_url=base_url, api_key="unused", model="tiny", temperature=1.0)  # type: ignore[arg-type]

    def step(place: int) -> Any:
        def call(state: MessagesState) -> dict[str, Any]:
            tokens = int(str(state["messages"][0].content).split()[place])
            return {"messages": [model.bind(max_tokens=tokens).invoke([("user", "Go on.")])]}

        return call

    builder = StateGraph(MessagesState)
    for place, name in enumerate(STEPS):
        builder.add_node(name, step(place))
    builder.set_entry_point(STEPS[0])
    for one, other in itertools.pairwise(STEPS):
        builder.add_edge(one, other)
    return builder.compile()


def inputs() -> list[str]:
    """Lengths of the three answers of each run, tokens: many short ones and some long."""
    drawn = np.random.default_rng(7).lognormal(np.log(160), 0.7, size=(RUNS, len(STEPS))).astype(int) + 5
    return [" ".join(map(str, run)) for run in drawn]


def test_a_replay_under_a_longer_deadline_promises_no_more_than_a_real_server_keeps(
    base_url: str, tmp_path: Path
) -> None:
    graph, asked = graph_at(base_url), inputs()
    live = {"graph": graph, "inputs": asked, "runs": RUNS, "alternatives": "A", "side_by_side": 1}
    live |= {"clock": "wall", "services": "own"}
    free = dl.compare(30.0, **live).runs["returned_at_s"]
    short_s, long_s = (round(float(free.quantile(share)), 3) for share in (0.4, 0.85))

    recorded = dl.compare(short_s, record=tmp_path / "recording", **live)
    replay = {"graph": graph, "inputs": asked, "replay": tmp_path / "recording"}
    assert fidelity(recorded, dl.compare(**replay)).same_outcome >= 0.9

    replayed = dl.compare(long_s, **replay)
    measured = dl.compare(long_s, **live)
    shares = [share_interval(int(study.runs["answered_in_time"].sum()), RUNS) for study in (replayed, measured)]
    # Of two samples of one truth one's interval leaves the other's in far fewer than one test of a hundred.
    assert shares[0].low <= shares[1].high
    assert replayed.manifest["replayed_calls"]["cut_in_the_recording"] > 0
    assert replayed.runs["answered_in_time"].sum() >= recorded.runs["answered_in_time"].sum()
