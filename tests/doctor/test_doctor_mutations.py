"""A graph that keeps its deadline, broken in one way at a time: each is found, and nothing else."""

from __future__ import annotations

import asyncio
import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import graphs_to_mutate
import httpx
import hung_graphs
import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langchain_openai import ChatOpenAI

import docmind_lab as dl
from docmind_lab.experiments.doctor import LintReport

INPUT = {"question": "What is yield?"}


def linted(graph: Any, asked: Any = None, **options: Any) -> LintReport:
    key = options.pop("deadline_key", "stop_by")
    system = dl.graph(graph, [asked or INPUT], deadline_key=key)
    return dl.doctor(system, 5.0, **{"alternatives": "A,C,E"} | options)


@functools.cache
def unbroken() -> LintReport:
    return linted(graphs_to_mutate.made())


def kinds(report: LintReport) -> set[tuple[str, str]]:
    return {(finding.node, finding.kind) for finding in report.findings}


def new(report: LintReport) -> set[tuple[str, str]]:
    return kinds(report) - kinds(unbroken())


def keeping(report: LintReport) -> dict[str, str]:
    return {verdict.alternative: verdict.keeping for verdict in report.verdicts}


def test_the_graph_itself_keeps_its_deadline_and_nothing_defeats_an_alternative() -> None:
    assert keeping(unbroken()) == {"A": "keeps", "C": "keeps", "E": "keeps"}
    assert not unbroken().overruns
    # Without a deadline that travels a call that is never answered has no end: a warning, which defeats none of these.
    assert kinds(unbroken()) == {("draft", "call"), ("answer", "call")}


KEEPS, LATE = "keeps", "does not keep"


@pytest.mark.parametrize(
    ("mutation", "found", "verdicts"),
    [
        ({"retries": 2}, {("draft", "retries"), ("answer", "retries")}, (LATE, KEEPS, KEEPS)),
        ({"drops_key": True}, {("answer", "key")}, (KEEPS, KEEPS, KEEPS)),
        # Outside the loop, a caller of E leaves it behind; one that awaits E cannot.
        ({"blocks": True}, {("answer", "blocks_loop")}, (KEEPS, LATE, LATE)),
    ],
    ids=["a retry that was added", "a key that was dropped", "a call that blocks the loop"],
)
def test_a_mutation_is_found_where_it_is_and_defeats_what_it_makes_late(
    mutation: dict[str, Any], found: set[tuple[str, str]], verdicts: tuple[str, str, str]
) -> None:
    report = linted(graphs_to_mutate.made(**mutation))
    assert new(report) == found
    assert tuple(keeping(report).values()) == verdicts
    assert {facts.node: facts.has_key for facts in report.nodes} == {
        "draft": True,
        "answer": "drops_key" not in mutation,
    }
    late = [overrun.trial for overrun in report.overruns if overrun.caller_s > 0.15]
    if "blocks" in mutation:
        assert {(trial.alternative, trial.awaited) for trial in late} == {("C", False), ("E", True)}


def test_a_cap_for_each_read_is_found_with_what_it_let_through() -> None:
    report = linted(graphs_to_mutate.made(read_timeout_s=4.0))
    # A call that is never answered now ends by itself, within the budget.
    assert new(report) == {("draft", "per_read"), ("answer", "per_read")}
    (draft, answer) = report.nodes
    assert draft.timeouts_s == answer.timeouts_s == (4.0,)
    assert answer.trickled is not None
    assert answer.trickled.took_s > 11 * 2.0
    assert answer.worst_case is not None
    assert answer.worst_case.took_s == pytest.approx(4.0)


def one_node(node: Any) -> Any:
    return hung_graphs.one_node(node, "answer", graphs_to_mutate.State)


@pytest.mark.parametrize(
    ("pool", "kept", "found"),
    [
        (ThreadPoolExecutor, {"A": LATE, "E": "caller only"}, {("answer", "no_context"): ("A", "E")}),
        (ContextThreadPoolExecutor, {"A": KEEPS, "E": KEEPS}, {}),
    ],
)
def test_no_deadline_reaches_what_a_node_asks_in_threads_without_its_context(pool: Any, kept: Any, found: Any) -> None:
    def answer(state: Any) -> dict[str, Any]:
        with pool(2) as threads:
            return {"answer": str(list(threads.map(lambda _: hung_graphs.ask_tavily(60), range(2))))}

    report = linted(one_node(answer), alternatives="A,E")
    assert keeping(report) == kept
    assert {(each.node, each.kind): each.defeats for each in report.findings if each.defeats} == found


def test_what_a_thread_without_its_context_asks_is_named_as_that_after_its_node_is_over() -> None:
    def answer(state: Any) -> dict[str, Any]:
        threads = ThreadPoolExecutor(1)
        threads.submit(hung_graphs.ask_tavily, 60)
        threads.shutdown(wait=False)
        return {"answer": "a"}

    report = linted(one_node(answer), alternatives="A")
    assert keeping(report) == {"A": "caller only"}
    assert [(each.node, each.kind, each.defeats) for each in report.findings] == [("", "no_context", ("A",))]
    assert "in no node, which began" in report.findings[0].evidence[0].says


def test_a_node_that_goes_on_after_its_cancellation_is_told_so() -> None:
    async def answer(state: Any) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(timeout=60) as client:
                await client.post("https://api.tavily.com/search", json={"query": "q"})
        finally:
            await asyncio.sleep(2)
        return {"answer": "a"}

    report = linted(one_node(answer), alternatives="C,F")
    assert keeping(report) == {"C": LATE, "F": "caller only"}
    found = {(each.node, each.kind): each.defeats for each in report.findings if each.defeats}
    assert found == {("answer", "uncancelled"): ("C", "F")}


def test_a_node_that_blocks_the_loop_after_a_failed_request_is_not_told_that_it_caught_its_cancellation() -> None:
    async def answer(state: Any) -> dict[str, Any]:
        async with httpx.AsyncClient(timeout=60) as client:
            answered = await client.post("https://api.tavily.com/search", json={"query": "q"})
        if answered.status_code != httpx.codes.OK:
            time.sleep(2)
        return {"answer": "a"}

    report = linted(one_node(answer), alternatives="C")
    assert report.nodes[0].mode == "blocking async"
    assert {each.kind for each in report.findings if each.defeats} == {"blocks_loop"}


def only(mode: str) -> Any:
    def sync_node(state: Any) -> dict[str, Any]:
        return {"answer": "a"}

    async def async_node(state: Any) -> dict[str, Any]:
        return {"answer": "a"}

    return one_node(async_node if mode == "async" else sync_node)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_graph_that_nothing_happens_in_keeps_its_deadline_whatever_its_mode(mode: str) -> None:
    report = linted(only(mode))
    assert keeping(report) == {"A": "keeps", "C": "keeps", "E": "keeps"}
    assert not report.findings


def test_a_node_whose_sync_form_fails_defeats_what_is_sync() -> None:
    def refuse(state: Any) -> dict[str, Any]:
        raise NotImplementedError("use ainvoke")

    async def answer(state: Any) -> dict[str, Any]:
        return {"answer": "a"}

    report = linted(one_node(RunnableLambda(refuse, answer)))
    assert keeping(report) == {"A": "does not run", "C": "keeps", "E": "keeps"}
    (finding,) = [finding for finding in report.findings if finding.kind == "cannot_run"]
    assert (finding.node, finding.defeats) == ("answer", ("A",))


def test_a_function_that_makes_the_graph_is_called_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(only("sync"))
        return made[-1]

    monkeypatch.setattr(graphs_to_mutate, "make_once", make, raising=False)
    assert linted("graphs_to_mutate:make_once", alternatives="A").graph == "graphs_to_mutate:make_once"
    assert len(made) == 1
    linted(make, alternatives="A")
    assert len(made) == 2


def test_the_requests_of_a_graph_are_shown_without_the_keys_in_their_addresses() -> None:
    def ask(state: Any) -> dict[str, Any]:
        address = "https://ada:secret@api.openai.com/v1/chat/completions?api_key=secret"
        httpx.post(address, json={"model": "any", "messages": [{"role": "user", "content": "a"}]})
        return {"answer": "a"}

    ((address, node, count),) = linted(one_node(ask), alternatives="A").requests
    assert "secret" not in address
    assert (address.startswith("POST https://"), node, count) == (True, "answer", 1)


def test_a_loop_that_is_blocked_after_a_wait_that_can_be_cancelled_is_found() -> None:
    async def node(state: Any) -> dict[str, Any]:
        await asyncio.sleep(5.0)
        time.sleep(2.0)
        return {"answer": "a"}

    report = linted(one_node(node), alternatives="C")
    (finding,) = [finding for finding in report.findings if finding.kind == "blocks_loop"]
    assert finding.defeats == ("C",)
    assert max(overrun.work_s for overrun in report.overruns) == pytest.approx(1.8, abs=0.02), "nine tenths of 2 s"


def test_a_search_that_is_never_answered_is_found_beside_a_model() -> None:
    def node(state: Any) -> dict[str, Any]:
        ChatOpenAI(model="gpt-4o", api_key="k", max_retries=0).invoke(state["question"])
        with httpx.Client(base_url="http://q.example.org:6333/collections/c", timeout=None) as store:
            store.put("", json={"vectors": {"size": 1, "distance": "Dot"}})
            store.post("/points/query", json={"query": [0.1]})
        return {"answer": "a"}

    report = linted(one_node(node), alternatives="A,D")
    (only_node,) = report.nodes
    assert only_node.calls == {"llm": 1, "retrieval": 2}
    assert only_node.capped == (3, 3)
    late = {(overrun.trial.fault.partition(":")[0], overrun.trial.alternative) for overrun in report.overruns}
    assert {("hang", "D"), ("retrieval_hang", "D")} <= late
    assert keeping(report)["A"] == "keeps"


def test_of_a_tool_and_its_request_the_request_is_named() -> None:
    def look_up(query: str) -> str:
        """Look something up."""
        asked = {"model": "m", "messages": [{"role": "user", "content": query}]}
        return httpx.post("https://llm.example.org/v1/chat/completions", json=asked, timeout=None).text

    agent = create_agent(ChatOpenAI(model="gpt-4o", api_key="k", max_retries=0), [look_up])
    report = linted(agent, "What is yield?", alternatives="A,D", deadline_key="deadline_ts")
    hung = [overrun for overrun in report.overruns if overrun.trial.fault == "hang:tools"]
    assert [(overrun.trial.alternative, overrun.cause) for overrun in hung] == [("D", "call")]
    assert hung[0].call_id.startswith("llm/tools/")
    assert keeping(report) == {"A": "keeps", "D": "does not keep"}
