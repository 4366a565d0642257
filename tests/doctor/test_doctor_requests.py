"""Every request of every node is never answered, answered in pieces, and failed, whichever service it goes to."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import time
from types import SimpleNamespace
from typing import Any

import httpx
import hung_graphs
import pytest
from hung_graphs import chat_model
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, RetryPolicy, Send, interrupt

import docmind_lab as dl
from docmind_lab.alternatives.enforcement import enforce
from docmind_lab.core.errors import GraphError, NotSimulated
from docmind_lab.experiments.doctor import LintReport
from docmind_lab.experiments.doctor.late_runs import failed_last
from docmind_lab.services.vector_service import VectorService

ASKED: dict[str, Any] = {"question": "Why?"}
CHAT: dict[str, Any] = {"messages": [HumanMessage("Why?")]}


@functools.cache
def linted(name: str, decision_timeout_s: float = 1.0) -> LintReport:
    asked = CHAT if name in ("searching_then_asking", "asking_twice", "many") else ASKED
    return dl.doctor(dl.graph(f"hung_graphs:{name}", [asked]), decision_timeout_s=decision_timeout_s)


def keeping(report: LintReport) -> dict[str, str]:
    return {verdict.alternative: verdict.keeping for verdict in report.verdicts}


OF_SYNC_CODE_WITH_A_LONG_REQUEST = {
    "A": "keeps",
    "B": "caller only",
    "C": "caller only",
    "D": "does not keep",
    "E": "keeps",
    "F": "caller only",
}


def test_a_request_to_another_service_is_never_answered_and_comes_in_pieces_whether_it_searches_or_writes() -> None:
    for name in ("searching", "writing"):
        assert keeping(linted(name)) == OF_SYNC_CODE_WITH_A_LONG_REQUEST
        assert linted(name).unprobed == ()
    (node,) = linted("searching").nodes
    assert node.worst_case is not None
    assert node.worst_case.took_s == pytest.approx(60.0)
    assert node.trickled is not None
    assert node.retries is not None
    # `compare` may say "Choose A" of ordinary latencies where no alternative keeps the deadline here.
    says = "Measured with requests that hang, trickle and fail; compare has ordinary ones."
    assert says in linted("searching").finding().sentences


def test_a_request_is_struck_alone_where_an_earlier_one_of_its_node_would_end_the_run() -> None:
    report = linted("searching_then_asking", 5.0)
    assert keeping(report) == OF_SYNC_CODE_WITH_A_LONG_REQUEST
    late = {overrun.trial.fault for overrun in report.overruns if overrun.trial.alternative == "D"}
    assert "hang:only#2" in late
    assert "hang:only" not in late, "the search is given up at once, and the model is never asked"
    (node,) = report.nodes
    assert node.worst_case is not None
    assert 60.0 < node.worst_case.took_s < 61.0, "the search is answered within a second"


def test_a_node_whose_request_no_fault_strikes_is_named_and_never_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VectorService, "plan", VectorService._plan)
    report = dl.doctor(dl.graph(hung_graphs.writing, [ASKED]), decision_timeout_s=1.0, alternatives="A,E")
    assert keeping(report) == {"A": "not known", "E": "not known"}
    assert not report.keeps
    assert set(report.unprobed) == {
        ("only", "PUT http://store.example.org:6333/collections/c/"),
        ("only", "PUT http://store.example.org:6333/collections/c/points"),
    }


@pytest.mark.parametrize("asks_too", [False, True])
def test_a_kept_answer_is_not_said_to_be_measured_with_a_hang_though_others_are(asks_too: bool) -> None:
    kept: list[Any] = []

    def answer(state: Any) -> dict[str, Any]:
        kept.extend([] if kept else [hung_graphs.ask_tavily(60)])
        ask: Any = chat_model(float(state["question"])).invoke if asks_too else str
        with contextlib.suppress(Exception):
            ask("Why?")
        return {}

    # Of several visits the longest counts.
    visits = [Send("only", {"question": "2"}), Send("only", {"question": "8"})]
    builder = StateGraph(hung_graphs.State).add_node("only", answer).add_conditional_edges(START, lambda state: visits)
    report = dl.doctor(dl.graph(builder.compile(), [ASKED]), 1.0, alternatives="A")
    first, *others = (str(words) for words in report.finding().words)
    assert "forget them in a function of the configuration that makes it" in first
    assert (keeping(report), report.unprobed) == ({"A": "not known"}, (("only", "POST https://api.tavily.com/search"),))
    assert any("Measured with requests" in words for words in others) == asks_too
    worst = [facts.worst_case.took_s for facts in report.nodes if facts.worst_case is not None]
    assert worst == ([pytest.approx(8.0)] if asks_too else [])


def test_a_node_that_only_a_failure_leads_to_is_examined_with_its_own_requests() -> None:
    report = linted("recovering")
    assert keeping(report)["D"] == "does not keep"
    assert [facts.node for facts in report.nodes] == ["only", "__error_handler__only"]
    late = {overrun.trial.fault for overrun in report.overruns if overrun.node == "__error_handler__only"}
    assert "http_500:only + hang:__error_handler__only" in late
    assert report.unreached == ()
    commands = [evidence.command for finding in report.findings for evidence in finding.evidence]
    assert any("--faults http_500:only --faults hang:__error_handler__only" in command for command in commands)


def test_requests_side_by_side_have_no_negative_waits() -> None:
    (node,) = linted("asking_twice", 20.0).nodes
    assert str(node.worst_case) == "60.0 s: 2 requests side by side, 60.0 s of timeouts, 0.0 s of waits"


def test_a_wait_follows_a_failure_only_where_no_other_request_of_its_visit_has_begun_since() -> None:
    def request(outcome: str, begun_s: float, ended_s: float) -> Any:
        return SimpleNamespace(role="only", step="1.0.1", outcome=outcome, started_at_s=begun_s, ended_at_s=ended_s)

    failed, beside, since = request("error", 0.0, 1.0), request("ok", 0.5, 2.0), request("ok", 1.5, 2.0)
    assert failed_last([failed, beside], "only", 3.0) == [failed]
    assert failed_last([failed, beside, since], "only", 3.0) == []


async def ask_for_ten_seconds(state: Any) -> dict[str, Any]:
    async with httpx.AsyncClient(timeout=10) as client:
        answered = await client.post("https://api.tavily.com/search", json={"query": "q"})
    return {"answer": answered.raise_for_status().text}


def test_the_tries_of_a_retry_policy_are_one_visit_with_the_waits_between_them() -> None:
    policy = RetryPolicy(max_attempts=3, initial_interval=2, backoff_factor=1, jitter=False, retry_on=Exception)
    graph = hung_graphs.one_node(ask_for_ten_seconds, retry_policy=policy)
    report = dl.doctor(dl.graph(graph, [ASKED]), 8.0, alternatives="A,B")
    (node,) = report.nodes
    assert str(node.worst_case) == "34.0 s: 3 requests, 30.0 s of timeouts, 4.0 s of waits"
    # The deadline in a wait of the policy's, which no request is under.
    assert ("only", "retries") in {(overrun.node, overrun.cause) for overrun in report.overruns}
    assert not [overrun for overrun in report.overruns if overrun.cause == "graph"]


def test_of_a_node_whose_answer_is_kept_only_what_was_seen_is_said() -> None:
    builder = StateGraph(hung_graphs.State).add_node("only", ask_for_ten_seconds, cache_policy=CachePolicy())
    graph = builder.add_edge(START, "only").compile(cache=InMemoryCache())
    report = dl.doctor(dl.graph(graph, [ASKED]), 8.0, alternatives="A")
    (node,) = report.nodes
    assert (node.mode, node.retries) == ("not seen", None)


def test_that_a_deadline_cuts_what_an_answered_run_left_behind_is_said_to_take_an_option_in_production() -> None:
    tasks = set()

    async def answer(state: Any) -> dict[str, Any]:
        tasks.add(asyncio.create_task(ask_for_ten_seconds(state)))
        await asyncio.sleep(0.1)
        return {"answer": "yes"}

    report = dl.doctor(dl.graph(hung_graphs.one_node(answer), [ASKED]), 1.0, alternatives="E")
    assert (keeping(report), report.cut_behind) == ({"E": "keeps"}, ("only",))
    assert "cuts_background=True" in " ".join(report.text().split())
    assert linted("searching").cut_behind == ()


def test_a_request_of_no_node_that_no_fault_reaches_is_warned_of_and_no_kept_answer_is_guessed() -> None:
    async def answer(state: Any) -> dict[str, Any]:
        first = await ask_for_ten_seconds(state)
        await asyncio.get_running_loop().run_in_executor(None, hung_graphs.ask_tavily, 10)
        return first

    report = dl.doctor(dl.graph(hung_graphs.one_node(answer), [ASKED]), 1.0, alternatives="E")
    assert keeping(report) == {"E": "not known"}
    assert ("", "no_context", ()) in {(each.node, each.kind, each.defeats) for each in report.findings}
    assert "keeps answers" not in report.text()


def test_an_error_handler_is_a_node_that_goes_on_past_the_deadline_and_is_named_as_one() -> None:
    report = linted("handling")
    lines = report.text()
    assert {overrun.node for overrun in report.overruns} == {"__error_handler__breaks"}
    assert "the error handler of node breaks" in lines
    assert "outside every node" not in lines
    assert keeping(report)["C"] == keeping(report)["E"] == "keeps"
    # C, E and F cut it.
    assert "no deadline" not in lines


@pytest.mark.filterwarnings("default")
def test_a_comparison_counts_an_error_handler_as_reached() -> None:
    world = dl.World(latencies="typical")
    study = dl.compare(dl.graph(hung_graphs.handling, [ASKED]), 1, alternatives="A", world=world, runs=1)
    assert "never_reached" not in study.manifest


def test_an_error_handler_that_no_run_reached_is_named_in_words() -> None:
    study = dl.compare(dl.graph(hung_graphs.recovering, [ASKED]), 10, alternatives="A", runs=1)
    assert "No run reached the error handler of node only, of which" in " ".join(str(study.report()).split())


def test_a_call_that_is_cut_names_the_error_handler_that_was_at_work() -> None:
    result = asyncio.run(enforce(hung_graphs.handling, 0.2, "E").ainvoke(ASKED))
    assert (result.outcome, result.cut_at) == ("timed_out", ("__error_handler__breaks",))


def test_a_caller_that_awaits_a_blocked_loop_is_told_how_late_and_by_which_line() -> None:
    report = linted("blocking")
    line = f"hung_graphs.py:{hung_graphs.line_that_blocks}"
    assert keeping(report)["E"] == "does not keep"
    of_e = [overrun for overrun in report.overruns if overrun.trial.alternative == "E"]
    assert {overrun.trial.awaited for overrun in of_e} == {True, False}
    assert max(overrun.caller_s for overrun in of_e if overrun.trial.awaited) == pytest.approx(1.0)
    assert max(overrun.caller_s for overrun in of_e if not overrun.trial.awaited) == pytest.approx(0.1)
    assert f"{line} blocks the event loop. Called outside it (invoke): caller only." in report.text()


@pytest.mark.parametrize("enforced", [False, True])
def test_a_comparison_says_of_e_that_who_awaits_it_waits_for_a_block(enforced: bool) -> None:
    study = dl.compare(dl.graph(hung_graphs.blocking, [ASKED], enforced=enforced), 1, alternatives="E", runs=1)
    assert study.manifest["loops_blocked"] == {f"hung_graphs.py:{hung_graphs.line_that_blocks}": 1}
    assert "one that awaits E (ainvoke) waits until the block ends" in " ".join(str(study.report()).split())


def test_e_awaited_and_not_are_the_same_where_nothing_blocks_the_loop() -> None:
    assert not any(overrun.trial.awaited for overrun in linted("searching").overruns)


async def async_with_a_sync_tool(state: hung_graphs.State) -> dict[str, Any]:
    return {"answer": await StructuredTool.from_function(slow_tool).ainvoke({"query": "q"})}


def slow_tool(query: str) -> str:
    """Take a second."""
    time.sleep(1.0)
    return query


def sync_with_a_sync_tool(state: hung_graphs.State) -> dict[str, Any]:
    return {"answer": StructuredTool.from_function(slow_tool).invoke({"query": "q"})}


@pytest.mark.parametrize(("node", "mode"), [(async_with_a_sync_tool, "sync inside"), (sync_with_a_sync_tool, "sync")])
def test_an_async_node_is_not_called_sync_for_a_tool_inside_it(node: Any, mode: str) -> None:
    (facts,) = dl.doctor(dl.graph(hung_graphs.one_node(node), [ASKED]), decision_timeout_s=5.0, alternatives="C").nodes
    assert facts.mode == mode


@pytest.mark.full
def test_findings_are_grouped_over_nodes_after_the_verdicts_on_25_lines_of_a_terminal() -> None:
    report = linted("many")
    lines = report.finding().sentences
    assert len(report.finding().text(80).splitlines()) <= 25, report.finding().text(80)
    assert [line.split()[0] for line in lines[:6]] == list("ABCDEF")
    assert any("nodes node_0, node_1 and 2 others" in line for line in lines)
    assert len({finding.kind for finding in report.findings}) >= 4
    whole = report.finding(verbose=True).text()
    assert all(evidence.says in whole for finding in report.findings for evidence in finding.evidence)


def test_a_documented_mistake_that_nobody_chose_is_no_finding() -> None:
    assert not any("per_read" in name for finding in linted("searching").findings for name in finding.defeats)
    chosen = dl.doctor(dl.graph(hung_graphs.searching, [ASKED]), decision_timeout_s=1.0, alternatives="A:per_read")
    assert keeping(chosen) == {"A:per_read": "does not keep"}


def asking_twice(state: hung_graphs.State) -> dict[str, Any]:
    return {"answer": interrupt("Sure?") + interrupt("Really?")}


def test_a_graph_whose_answers_were_used_up_is_told_how_many_there_were() -> None:
    graph = hung_graphs.one_node(asking_twice)
    with pytest.raises(GraphError, match=r"person; answer it: --resume .*\"resume\" beside \"input\" in its line"):
        dl.doctor(dl.graph(graph, [ASKED]), alternatives="A")
    with pytest.raises(GraphError, match=r"after 1 answer; give one more: --resume"):
        dl.doctor(dl.graph(graph, [ASKED], resume=["yes"]), alternatives="A")


def looks_up(state: hung_graphs.State) -> dict[str, Any]:
    return {"answer": socket.getaddrinfo("example.org", 80)}


def test_a_name_look_up_is_named_as_one_with_its_line() -> None:
    line = looks_up.__code__.co_firstlineno + 1
    words = rf"example.org: a name look-up \(socket.getaddrinfo\) .*, at test_doctor_requests.py:{line}"
    with pytest.raises(NotSimulated, match=words):
        dl.doctor(dl.graph(hung_graphs.one_node(looks_up), [ASKED]), alternatives="A")
