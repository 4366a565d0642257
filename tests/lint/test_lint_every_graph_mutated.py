"""The three graphs that were not made for the lab, each broken in four ways: every mutation is found."""

from __future__ import annotations

import functools
import time
import warnings
from typing import Any, TypedDict

import graphs_agent
import graphs_mixed
import langchain.agents
import pytest
from langchain.agents import AgentState
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from docmind_lab.experiments.lint import LintReport, lint_graph
from docmind_lab.experiments.lint.facts import NodeFacts

with warnings.catch_warnings():
    # langgraph-supervisor still takes an older way to make agents from LangGraph.
    warnings.simplefilter("ignore")
    import graphs_supervisor

pytestmark = [
    pytest.mark.full,
    # Said by langgraph-supervisor at each team that is made.
    pytest.mark.filterwarnings("ignore:create_react_agent has been moved"),
]

QUESTION = "What does a with statement do?"


def linted(module: Any, **options: Any) -> LintReport:
    asked: Any = {"question": QUESTION} if module is graphs_mixed else QUESTION
    return lint_graph(module.make, [asked], decision_timeout_s=20.0, alternatives="A,C", **options)


@functools.cache
def unbroken(module: Any) -> LintReport:
    return linted(module)


def facts(report: LintReport, node: str) -> NodeFacts:
    return next(facts for facts in report.nodes if facts.node == node)


def kinds(report: LintReport, node: str) -> set[str]:
    return {finding.kind for finding in report.findings if finding.node == node}


def tries(report: LintReport, node: str) -> int:
    retries = facts(report, node).retries
    assert retries is not None
    return retries.failing


def chat_model(**changed: Any) -> Any:
    return lambda **given: ChatOpenAI(**given | changed)


def blocking_tool() -> StructuredTool:
    def look(query: str) -> str:
        return query

    async def look_async(query: str) -> str:
        time.sleep(2.0)
        return query

    return StructuredTool.from_function(look, look_async, name="look", description="Look something up.")


def with_client(monkeypatch: pytest.MonkeyPatch, module: Any, **changed: Any) -> None:
    if module is graphs_supervisor:
        model = ChatOpenAI(model="gpt-4o-mini", api_key="sk-of-the-user", **changed)
        monkeypatch.setattr(module, "model", model)
    elif module is graphs_agent:
        monkeypatch.setattr(module, "ChatOpenAI", chat_model(**changed))
    else:
        monkeypatch.setattr(module, "client", module.client.with_options(**changed))


NODES = [(graphs_supervisor, "supervisor"), (graphs_agent, "model"), (graphs_mixed, "plan")]


@pytest.mark.parametrize(("module", "node"), NODES)
def test_more_retries_are_found_as_more_tries(module: Any, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tries(unbroken(module), node)
    with_client(monkeypatch, module, max_retries=5)
    report = linted(module)
    assert tries(report, node) == before * 6 / 3
    assert "retries" in kinds(report, node)


@pytest.mark.parametrize(("module", "node"), NODES)
def test_a_clients_timeout_is_found_as_one_of_each_read(
    module: Any, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert facts(unbroken(module), node).timeouts_s != (5.0,)
    with_client(monkeypatch, module, timeout=5.0)
    report = linted(module)
    trickled = facts(report, node).trickled
    assert facts(report, node).timeouts_s == (5.0,)
    assert trickled is not None
    assert trickled.took_s > trickled.timeout_s == 5.0
    assert "per_read" in kinds(report, node)


@pytest.mark.parametrize(
    ("module", "tool", "node"),
    [(graphs_supervisor, "look_up", "reading_expert"), (graphs_agent, "search", "tools")],
)
def test_a_tool_that_blocks_the_loop_is_found(
    module: Any, tool: str, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "blocks_loop" not in kinds(unbroken(module), node)
    monkeypatch.setattr(module, tool, blocking_tool())
    report = linted(module)
    assert facts(report, node).mode == "blocking async"
    assert "blocks_loop" in kinds(report, node)


def test_a_node_that_blocks_the_loop_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def plan_blocking(state: Any) -> Any:
        return graphs_mixed.plan(state)

    assert facts(unbroken(graphs_mixed), "plan").mode == "async"
    monkeypatch.setattr(graphs_mixed, "plan_async", plan_blocking)
    report = linted(graphs_mixed)
    assert facts(report, "plan").mode == "blocking async"
    assert "blocks_loop" in kinds(report, "plan")


class WithKey(AgentState[Any]):
    """An agent's state that takes the deadline."""

    stop_by: float


def test_a_key_that_an_agents_schema_has_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    make = functools.partial(langchain.agents.create_agent, state_schema=WithKey)
    with monkeypatch.context() as patched:
        patched.setattr(graphs_agent, "create_agent", make)
        kept = linted(graphs_agent, deadline_key="stop_by")
    lost = linted(graphs_agent, deadline_key="stop_by")
    assert [facts.has_key for facts in kept.nodes] == [True, True]
    assert "key" not in kinds(kept, "model") | kinds(kept, "tools")
    assert "key" in kinds(lost, "model") & kinds(lost, "tools")


def test_a_key_that_a_team_does_not_hand_to_its_agents_is_found() -> None:
    report = linted(graphs_supervisor, deadline_key="stop_by")
    assert all("key" in kinds(report, node) for node in ("supervisor", "reading_expert", "counting_expert"))


def test_a_key_that_a_state_has_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = linted(graphs_mixed, deadline_key="stop_by")
    assert [facts.node for facts in kept.nodes if facts.has_key is False] == ["work"]
    fields = {name: kind for name, kind in graphs_mixed.State.__annotations__.items() if name != "stop_by"}
    monkeypatch.setattr(graphs_mixed, "State", TypedDict("State", fields, total=False))
    lost = linted(graphs_mixed, deadline_key="stop_by")
    assert {facts.has_key for facts in lost.nodes} == {False}
