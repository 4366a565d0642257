"""The lint on three graphs that were not made for the lab: every finding has its run, every overrun its finding."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import pytest
from often import often

import docmind_lab as dl
from docmind_lab.experiments.doctor import LintReport

QUESTION = "What does a with statement do?"
GRAPHS: dict[str, Any] = {
    "graphs_supervisor:team": QUESTION,
    "graphs_agent:make": QUESTION,
    "graphs_mixed:make": {"question": QUESTION},
}
with warnings.catch_warnings():
    # langgraph-supervisor still takes an older way to make agents from LangGraph.
    warnings.simplefilter("ignore")
    import graphs_supervisor  # noqa: F401 - imported here once, where its warning is expected


@functools.cache
def linted(graph: str) -> LintReport:
    key = "stop_by" if graph == "graphs_mixed:make" else "deadline_ts"
    return dl.doctor(
        dl.graph(graph, [GRAPHS[graph]], deadline_key=key), decision_timeout_s=20.0, alternatives="A,C,D,E"
    )


def found(graph: str) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(finding.node, finding.kind): finding.defeats for finding in linted(graph).findings}


@pytest.mark.parametrize("graph", often(GRAPHS, "graphs_mixed:make"))
def test_no_measured_overrun_lacks_a_finding_and_no_finding_a_run(graph: str) -> None:
    report = linted(graph)
    assert report.overruns
    for overrun in report.overruns:
        assert overrun.cause != "graph", overrun
        assert overrun.trial.alternative in found(graph)[overrun.node, overrun.cause], overrun
    late = {(overrun.node, overrun.cause) for overrun in report.overruns}
    for finding in report.findings:
        assert all(evidence.run_id and evidence.says for evidence in finding.evidence)
        assert finding.remedy
        assert ((finding.node, finding.kind) in late) == bool(finding.defeats)


@pytest.mark.full
def test_a_team_of_async_agents_is_kept_by_cancellation_and_not_past_the_waits_between_sync_tries() -> None:
    kept = {verdict.alternative: verdict.keeping for verdict in linted("graphs_supervisor:team").verdicts}
    assert kept == {"A": "does not keep", "C": "keeps", "D": "does not keep", "E": "keeps"}
    for node in ("supervisor", "reading_expert", "counting_expert"):
        assert "A" in found("graphs_supervisor:team")[node, "retries"]
        assert found("graphs_supervisor:team")[node, "call"] == ("D",)
        # A cap of each read is a mistake that nobody chose here, and the clients have no timeout of their own.
        assert (node, "per_read") not in found("graphs_supervisor:team")


@pytest.mark.full
def test_a_sync_tool_is_found_as_code_that_nothing_cuts_and_as_a_thread_that_a_cancellation_leaves() -> None:
    assert found("graphs_agent:make")["tools", "code"] == ("A", "D")
    assert found("graphs_agent:make")["tools", "thread"] == ("C", "E")
    assert not linted("graphs_agent:make").keeps
    assert {facts.has_key for facts in linted("graphs_agent:make").nodes} == {None}
    (tools,) = [facts for facts in linted("graphs_agent:make").nodes if facts.node == "tools"]
    assert (tools.mode, tools.calls, tools.code_s) == ("sync inside", {"tool": 2}, pytest.approx(0.4))
    (model,) = [facts for facts in linted("graphs_agent:make").nodes if facts.node == "model"]
    waited = [found for found in linted("graphs_agent:make").overruns if found.cause == "retries"]
    assert all(found.what_ate_it().startswith("the wait in node model after call llm/model/") for found in waited)
    assert model.retries is not None
    assert (model.retries.well, model.retries.failing, model.retries.of_one_call) == (1, 12, 3)


def test_nodes_of_three_colours_are_told_apart_with_their_worst_cases_and_keys() -> None:
    modes = {facts.node: facts.mode for facts in linted("graphs_mixed:make").nodes}
    assert modes == {"plan": "async", "work": "sync", "check": "blocking async", "report": "takes no time"}
    assert found("graphs_mixed:make")["check", "blocks_loop"] == ("C", "E")
    # The worst case is tries times timeouts, and the waits between.
    plan, work, check, _ = linted("graphs_mixed:make").nodes
    assert plan.worst_case is not None
    assert plan.worst_case.requests == 4 * 3
    assert plan.worst_case.timeouts_s == pytest.approx(12 * 600.0)
    # Four waits of the loop, 7.5 s together, and two of the client in each of its four tries, up to 1 s and 2 s.
    assert 7.5 < plan.worst_case.pauses_s < 7.5 + 4 * 3
    assert work.worst_case is not None
    assert work.worst_case.took_s == pytest.approx(60.0)
    assert check.worst_case is not None
    assert check.worst_case.requests == 3
    # A key that a Send does not pass on is missing there.
    assert found("graphs_mixed:make")["work", "key"] == ()
    assert [facts.has_key for facts in linted("graphs_mixed:make").nodes] == [True, False, True, True]
