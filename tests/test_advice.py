"""What `recommend` advises: only what `doctor` found to keep the deadline, or what is missing and how to get it."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands_here import said
from hung_graphs import one_node
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph

import docmind_lab as dl
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.experiments import advice as advising
from docmind_lab.experiments.doctor.doctor_report import Keeping, LintReport, Verdict
from docmind_lab.experiments.doctor.late_runs import Overrun
from docmind_lab.experiments.examination import Trial
from docmind_lab.findings.study import Study
from docmind_lab.services.endpoints import read_endpoints

STARTER = Path(__file__).parents[1] / "notebooks"
GRAPH, INPUTS = f"{STARTER / 'my_agent.py'}:graph", STARTER / "inputs.jsonl"
ENDPOINTS = STARTER / "endpoints.toml"
# 20 runs without a failure show 70 %, with 95 % confidence.
FEW: dict[str, Any] = {"target": 0.7, "runs": 20, "workers": 1}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def verdicts(report: LintReport | None) -> dict[str, str]:
    return {} if report is None else {each.alternative: each.keeping for each in report.verdicts}


def test_the_first_line_is_the_way_the_seconds_and_what_they_were_measured_on() -> None:
    advice = dl.recommend(dl.graph(GRAPH, INPUTS), world=dl.World(endpoints=ENDPOINTS), **FEW)
    assert verdicts(advice.report)[advice.alternative] == "keeps"
    assert advice.report is not None
    assert advice.report.decision_timeout_s == advice.decision_timeout_s
    first = advice.text().splitlines()[0]
    assert first.startswith("Choose ")
    assert f"with {advice.decision_timeout_s:g} s: " in first
    assert "my_agent.py:graph" in first
    assert "20 runs" in first
    assert f'enforce(graph, {advice.decision_timeout_s:g}, "{advice.alternative}")' in advice.text()
    assert advice.missing[0].startswith("your own latencies")
    assert advice.study is not None
    assert set(advice.study.runs["decision_timeout_s"]) == {advice.decision_timeout_s}
    # The next shorter round number does not do.
    assert re.search(r"Without a deadline 1\d of 20 take up to [\d.]+ s\.$", first)


def test_requests_that_nothing_answers_are_listed_and_rows_for_them_written(tmp_path: Path) -> None:
    system, file = dl.graph(GRAPH, INPUTS), tmp_path / "endpoints.toml"
    advice = dl.recommend(system, **FEW)
    assert (advice.alternative, len(advice.unanswered)) == ("", 2)
    assert "with KeyError: 'sky' in node sky" in advice.text() or "'departures' in node ferries" in advice.text()
    assert 'advice.write_endpoints("endpoints.toml")' in advice.text()
    advice.write_endpoints(file)
    assert {row.host for row in read_endpoints(file)} == {"weather.example.com", "ferries.example.com"}
    rows = file.read_text(encoding="utf-8")
    advising.Advice("No advice yet: nothing more is missing.").write_endpoints(file)
    assert file.read_text(encoding="utf-8") == rows


def report_of(timeout_s: float, *keeping: str, verdicts: tuple[Verdict, ...] = ()) -> LintReport:
    told = [Verdict(name, "keeps" if name in keeping else "does not keep", "", 1, 0) for name in ("C", "E")]
    return LintReport("my_agent.py:graph", timeout_s, 0.15, (), (), verdicts or tuple(told), ())


def goes_on(name: str, work_s: float) -> Verdict:
    trial = Trial(name, 20.0, "001")
    return Verdict(
        name, "caller only", "", 1, 1, Overrun(trial, "run", "node", "thread", "", 0.0, 1.0, 0.0, work_s, False)
    )


@pytest.mark.parametrize(
    ("verdicts", "allowed"),
    [
        ([Verdict("A", "does not keep", "", 1, 1), Verdict("B", "does not run", "", 0, 0)], []),
        ([goes_on("B", 0.5), Verdict("C", "not known", "", 1, 0)], ["C"]),
        ([goes_on("B", 0.5), Verdict("C", "keeps", "", 1, 0), Verdict("E", "keeps", "", 1, 0)], ["C", "E"]),
        # The least harm: it is no comfort that the caller is back while work goes on for a minute.
        ([goes_on("B", 67.6), goes_on("E", 0.86), goes_on("F", 0.9)], ["E", "F"]),
    ],
)
def test_only_the_best_that_doctor_found_is_measured(verdicts: list[Verdict], allowed: list[str]) -> None:
    assert advising._allowed(report_of(20.0, verdicts=tuple(verdicts))) == allowed


def test_too_few_runs_say_how_many_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advising, "doctor", lambda system, timeout_s, **others: report_of(timeout_s, "E"))
    advice = dl.recommend(dl.graph(GRAPH, INPUTS), world=dl.World(endpoints=ENDPOINTS), runs=10, workers=1)
    assert advice.alternative == ""
    assert "73 of each alternative" in " ".join(advice.missing)
    assert "runs=73 (--runs)" in advice.text()


async def _takes_long(state: MessagesState) -> dict[str, Any]:
    await asyncio.sleep(140)
    return {"messages": [AIMessage("Done.")]}


def test_a_graph_that_takes_minutes_is_observed_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advising, "doctor", lambda system, timeout_s, **others: report_of(timeout_s, "E"))
    graph = StateGraph(MessagesState).add_node("waits", _takes_long).add_edge(START, "waits").compile()
    advice = dl.recommend(dl.graph(graph, ["Go"]), **FEW)
    assert (advice.alternative, advice.decision_timeout_s) == ("E", 150.0)


def test_python_s_own_work_is_named_where_it_is_much_of_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advising, "doctor", lambda system, timeout_s, **others: report_of(timeout_s, "E"))
    graph = one_node(
        RunnableLambda(lambda _: {"messages": [AIMessage(str(sum(range(2_000_000))))]}), state=MessagesState
    )
    assert " s of CPU a run here" in dl.recommend(dl.graph(graph, ["Go"]), **FEW).missing[0]


async def _blocks(state: MessagesState) -> dict[str, Any]:
    time.sleep(30)
    return {"messages": [AIMessage("Done.")]}


def test_a_way_that_does_not_keep_the_deadline_is_not_advised() -> None:
    graph = StateGraph(MessagesState).add_node("blocks", _blocks).add_edge(START, "blocks").compile()
    advice = dl.recommend(dl.graph(graph, ["Go"]), **FEW)
    kept = verdicts(advice.report)
    assert "keeps" not in kept.values()
    assert kept.get(advice.alternative, "none") in ("none", "caller only")
    assert advice.title.startswith("No a")
    assert "a graph that lets itself be cut" in " ".join(advice.missing)


@pytest.mark.parametrize(("keeping", "is_missing"), [("not known", True), ("does not run", False)])
def test_a_graph_that_was_not_seen_to_resist_cuts_is_not_said_to(
    keeping: Keeping, is_missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tuple(Verdict(name, keeping, "", 1, 0) for name in ("C", "E"))
    monkeypatch.setattr(advising, "doctor", lambda system, timeout_s, **others: report_of(timeout_s, verdicts=told))
    text = dl.recommend(dl.graph(GRAPH, INPUTS), world=dl.World(endpoints=ENDPOINTS), **FEW).text()
    assert "lets itself be cut" not in text
    assert ("Missing: a request that can be made to hang: advice.report" in text) == is_missing


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        ([7.0] * 80, 8.0),
        ([8.0] * 80, 8.0),
        # One slow run of 120 is allowed for, and two are not.
        ([7.0] * 119 + [90.0], 8.0),
        ([7.0] * 118 + [90.0] * 2, 100.0),
        ([0.02] * 80, 0.1),
        ([7.0] * 10, 8.0),
    ],
)
def test_the_timeout_is_the_round_number_that_enough_runs_do_not_take_without_a_deadline(
    times_s: list[float], expected: float
) -> None:
    runs = pd.DataFrame({"returned_at_s": times_s})
    runs = runs.assign(outcome="answered", decision_timeout_s=20.0)
    assert advising._enough_for(runs, 0.95, 0.95) == expected


def test_a_study_without_a_finished_run_says_why_instead_of_recommending() -> None:
    study = Study.of([], {"failed_cells": [{"cell": "00-0", "reason": "NotSimulated: no service answers"}]})
    with pytest.raises(ConfigurationError, match="no run of this study was finished: NotSimulated: no service answers"):
        study.recommend()


def test_the_command_advises_on_a_graph_as_the_call_does(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    graph = ("recommend", "--graph", GRAPH, "--inputs", INPUTS)
    file = tmp_path / "endpoints.toml"
    code, out, err = said(capsys, *graph, "--write-endpoints", file)
    assert (code, out.startswith("No advice yet"), file.exists()) == (1, True, True), err
    code, out, _ = said(
        capsys, *graph, "--endpoints", ENDPOINTS, "--runs", 20, "--target", 0.7, "--alternatives", "E", "--json"
    )
    told = json.loads(out)
    assert (code, told["alternative"], told["decision_timeout_s"] > 0) == (0, "E", True)
    for words in (("recommend",), (*graph[:3], "results/study")):
        code, _, err = said(capsys, *words)
        assert (code, err.count("\n")) == (2, 1)
