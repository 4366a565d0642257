"""The lint's verdicts agree with `compare --faults hang:NODE`, and with `http_500`, for each node and each request."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from often import often

import docmind_lab as dl
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.experiments.doctor.doctor_bench import TrialBench
from docmind_lab.experiments.doctor.late_runs import Overrun
from docmind_lab.experiments.doctor.probing import GraphProbe
from docmind_lab.experiments.examination import Examined

pytestmark = pytest.mark.filterwarnings("default")
FOLDER = Path(__file__).parents[2] / "examples" / "graphs"
EXAMPLES = sorted(json.loads((FOLDER / "langgraph.json").read_text())["graphs"])
TIMEOUT_S = 5.0
ALTERNATIVES = "A,B,C,D,E,F"
# How bad a verdict is.
ORDER = ("keeps", "caller only", "does not keep")
ASKED: dict[str, Any] = {"question": "Why?"}
CHAT: dict[str, Any] = {"messages": [HumanMessage("Why?")]}
SMALL = {
    "searching": ASKED,
    "recovering": ASKED,
    "asking_twice": CHAT,
    "searching_then_asking": CHAT,
    "writing": ASKED,
    "blocking": ASKED,
    "handling": ASKED,
}


def faults_of(graph: Any, inputs: Any) -> list[list[str]]:
    """Each fault of a node, or of one request, that the lint tries and `compare` can be given."""
    with contextlib.closing(TrialBench(Examined(dl.graph(graph, inputs)), seed=7)) as bench:
        probed = GraphProbe(bench, TIMEOUT_S, 0.15, "")
    return [fault.split(" + ") for fault in dict.fromkeys(fault for _, fault, _ in probed.trials) if fault != "none"]


def worst_of(group: Any, slack_s: float) -> str:
    """The verdict that these runs of a comparison are worth."""
    waited = group["caller_overrun_s"].fillna(math.inf).max() > slack_s
    worked = group["work_overrun_s"].max() > slack_s
    return "does not keep" if waited else "caller only" if worked else "keeps"


def check(graph: Any, inputs: Any, runs: int) -> Any:
    report = dl.doctor(dl.graph(graph, inputs), decision_timeout_s=TIMEOUT_S)
    verdicts = {verdict.alternative: verdict for verdict in report.verdicts}
    for faults in faults_of(graph, inputs):
        world = dl.World(latencies="typical", faults=faults)
        study = dl.compare(dl.graph(graph, inputs), TIMEOUT_S, alternatives=ALTERNATIVES, world=world, runs=runs)
        for name, group in study.runs.groupby("alternative", observed=True):
            letter, seen = letter_of(str(name)), worst_of(group, report.slack_s)
            # What compare shows is in the verdict.
            if verdicts[letter].keeping != "does not run":
                assert ORDER.index(verdicts[letter].keeping) >= ORDER.index(seen), (letter, faults, seen)
            # What the lint says of these faults at this deadline, compare shows.
            if any(is_of(overrun, letter, faults) for overrun in report.overruns):
                assert seen != "keeps", (letter, faults)
    return report


def is_of(overrun: Overrun, letter: str, faults: list[str]) -> bool:
    trial = overrun.trial
    of_comparison = trial.decision_timeout_s == TIMEOUT_S and not trial.awaited
    return of_comparison and (trial.alternative, trial.faults) == (letter, faults)


@pytest.mark.parametrize("name", often(SMALL, "recovering"))
def test_small_graphs_are_judged_as_compare_measures_them(name: str) -> None:
    check(f"hung_graphs:{name}", [SMALL[name]], 1)


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_graphs_of_the_examples_are_judged_as_compare_measures_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FOLDER)
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "none")
    inputs = FOLDER / f"{name}.jsonl"
    runs = sum(bool(line.strip()) for line in inputs.read_text().splitlines())
    report = check(f"langgraph.json:{name}", str(inputs), runs)
    assert report.requests
    # Nodes that are sync keep some graphs from being held by any; each was judged by runs all the same.
    assert all(verdict.runs and verdict.keeping != "does not run" for verdict in report.verdicts)
