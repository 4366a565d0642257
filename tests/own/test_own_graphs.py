"""Three graphs that were not made for the lab, unchanged, under every alternative in virtual time."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from typing import Any

import graphs_mixed
import httpx
import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from odd_graphs import NAP_S
from often import often
from own_runs import EVERY, GRAPHS, measured_on_the_wall, services, simulated

from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.tables.records import CallRecord

PROPAGATING = "A,B:propagate,C:propagate,D:propagate,E,F:propagate"
NAMES = ("unguarded", "cooperative", "hard_timeout", "async_cancellation", "stop_flag", "hybrid", "native")


@functools.cache
def ample(graph: str) -> tuple[MeasuredRun, ...]:
    """One run under each alternative with all the time that it needs."""
    return tuple(simulated(graph, alternatives=EVERY, decision_timeout_s=120.0))


@functools.cache
def hung(graph: str) -> tuple[MeasuredRun, ...]:
    """Every call of a model hangs; under alternatives that propagate the deadline."""
    return tuple(simulated(graph, alternatives=PROPAGATING, decision_timeout_s=6.0, faults="hang:*"))


def client_calls(measured: MeasuredRun, kind: str = "llm") -> list[CallRecord]:
    return [call for call in measured.calls if call.seen_from == "client" and call.kind == kind]


def server_calls(measured: MeasuredRun) -> list[CallRecord]:
    return [call for call in measured.calls if call.seen_from == "server"]


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_answers_under_every_alternative_at_one_instant_and_each_call_is_seen_from_both_sides(
    graph: str,
) -> None:
    runs = ample(graph)
    assert [measured.run.alternative for measured in runs] == list(NAMES)
    assert {(measured.run.outcome, measured.run.work_censored) for measured in runs} == {("answered", False)}
    returned = {measured.run.returned_at_s for measured in runs}
    assert max(returned) - min(returned) < 1e-9
    for measured in runs:
        seen = {(call.call_id, call.attempt) for call in client_calls(measured)}
        assert seen == {(call.call_id, call.attempt) for call in server_calls(measured)}
        assert all(call.role for call in client_calls(measured))
        assert len(seen) == measured.run.llm_calls > 1


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_deadline_that_travels_cuts_the_call_and_the_caller_is_back_at_once(graph: str) -> None:
    for measured in hung(graph):
        run = measured.run
        assert (run.outcome, run.returned_at_s) == ("timed_out", pytest.approx(6.0, abs=0.005))
        assert run.stop_reason in ("deadline", "hard_timeout", "cancelled", "node_timeout")
        assert run.quiescent_at_s == pytest.approx(6.0, abs=0.005), "no retry of client, middleware or loop goes on"
        assert run.llm_calls == len(server_calls(measured)) == 1
        assert run.propagation_coverage == 1.0


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_cap_for_each_read_surfaces_as_the_clients_own_timeout_which_it_tries_again(graph: str) -> None:
    (measured,) = simulated(graph, alternatives="A:per_read", decision_timeout_s=6.0, faults="hang:*")
    # The wait before its next try is over when nothing is left, and the try is refused.
    assert (measured.run.outcome, measured.run.stop_reason) == ("timed_out", "budget_refused")
    assert 0.1 < measured.run.caller_overrun_s < 1.0


def test_tries_of_one_call_are_attempts_of_it_whoever_counts_them() -> None:
    for graph in ("graphs_agent:make", "graphs_mixed:make"):
        (measured,) = simulated(graph, alternatives="unguarded", decision_timeout_s=120.0, faults="http_500@1:*")
        first = client_calls(measured)[:2]
        assert [(call.attempt, call.outcome) for call in first] == [(1, "error"), (2, "ok")], graph
        assert first[0].call_id == first[1].call_id, graph


def test_tokens_are_those_that_the_server_counted() -> None:
    measured = ample("graphs_supervisor:team")[0]
    counted = [(call.input_tokens, call.output_tokens) for call in server_calls(measured)]
    assert [(call.input_tokens, call.output_tokens) for call in client_calls(measured)] == counted


def test_a_tools_call_is_one_attempt_from_its_start_to_its_end_whether_or_not_it_uses_a_network() -> None:
    search, note = client_calls(ample("graphs_agent:make")[1], "tool")
    assert note.ended_at_s == note.started_at_s
    assert (search.role, search.outcome) == ("tools", "ok")
    assert search.ended_at_s - search.started_at_s == pytest.approx(0.4)


def test_a_sync_tool_that_an_async_run_leaves_behind_is_work_until_its_end() -> None:
    def look_up(query: str) -> str:
        """Look something up, slowly."""
        time.sleep(30.0)
        return query

    agent = create_agent(ChatOpenAI(model="gpt-4o", api_key="k"), [look_up])
    (measured,) = simulated(agent, alternatives="C", decision_timeout_s=20.0)
    (tool,) = client_calls(measured, "tool")
    assert measured.run.returned_at_s == pytest.approx(20.0)
    assert (tool.outcome, tool.ended_at_s) == ("abandoned", pytest.approx(tool.started_at_s + 30.0))
    assert measured.run.quiescent_at_s == tool.ended_at_s


def test_branches_that_run_side_by_side_are_told_apart_by_their_place() -> None:
    branches = [call.step for call in client_calls(ample("graphs_mixed:make")[0]) if call.role == "work"]
    assert sorted(branches) == ["2.0.1", "2.1.1", "2.2.1"]


def test_checkpoints_of_a_graph_that_has_them_are_seen_and_each_run_has_a_thread_of_its_own() -> None:
    left, cut = simulated("graphs_supervisor:team", alternatives="B,E", decision_timeout_s=5.0, profile="heavy_tail")
    puts = [event for event in left.events if event.event == "checkpoint_put"]
    assert left.run.stop_reason == "hard_timeout"
    assert left.run.late_checkpoints > 0
    assert len(puts) > left.run.late_checkpoints
    assert cut.run.late_checkpoints == 0
    (without, *_) = ample("graphs_agent:make")
    assert not [event for event in without.events if event.event == "checkpoint_put"]


def test_the_deadline_reaches_a_key_of_the_graph_that_asks_for_it_and_no_other_graph() -> None:
    (measured,) = simulated("graphs_mixed:make", alternatives="A", decision_timeout_s=60.0, deadline_key="stop_by")
    assert measured.outcome.outcome == "answered"
    assert graphs_mixed.SEEN[-1] == pytest.approx(60.0)
    (without,) = simulated("graphs_mixed:make", alternatives="A", decision_timeout_s=60.0)
    assert without.outcome.outcome == "answered"
    assert graphs_mixed.SEEN[-1] == 0.0


def test_a_graph_that_ends_has_answered_whatever_it_says() -> None:
    outcomes = {measured.outcome.outcome for measured in ample("graphs_mixed:make")}
    assert (outcomes, ample("graphs_mixed:make")[0].outcome.answer) == ({"answered"}, "")
    assert ample("graphs_agent:make")[0].outcome.answer


def test_a_score_is_the_share_of_the_gold_that_the_answer_states() -> None:
    given = {"input": "What is a deadline?", "gold": ["an INSTANT", "number of seconds", "nothing of the kind"]}
    (measured,) = simulated("graphs_agent:make", alternatives="A", decision_timeout_s=60.0, given=given)
    stated = [fact.casefold() in measured.outcome.answer.casefold() for fact in given["gold"]]
    assert measured.run.answer_score == pytest.approx(sum(stated) / 3)
    assert math.isnan(measured.run.source_recall)
    assert math.isnan(ample("graphs_agent:make")[0].run.answer_score)


def test_the_same_graph_gives_the_same_tables_every_time() -> None:
    def tables(runs: Sequence[MeasuredRun]) -> list[str]:
        return [repr((measured.run, measured.calls, measured.events)) for measured in runs]

    again = simulated("graphs_mixed:make", alternatives=EVERY, decision_timeout_s=120.0)
    assert tables(again) == tables(ample("graphs_mixed:make"))


# ---- on the wall clock: simulated services over sockets, or its own endpoints


SIDES = ("client", "server")


@pytest.mark.wall
@pytest.mark.parametrize("graph", often(GRAPHS, "graphs_mixed:make"))
def test_a_graph_runs_unchanged_over_sockets_under_every_alternative(graph: str) -> None:
    # A budget of no consequence: what is shown is that everything runs, is redirected, and is seen from both sides.
    before = vars(httpx.HTTPTransport)["handle_request"]
    with services() as here:
        runs = measured_on_the_wall(here, graph, EVERY, 30.0, side_by_side=4)
    assert vars(httpx.HTTPTransport)["handle_request"] is before
    assert [measured.run.outcome for measured in runs] == ["answered"] * 7
    for measured in runs:
        seen = {side: {c.call_id for c in measured.calls if c.seen_from == side and c.kind == "llm"} for side in SIDES}
        assert seen["client"] == seen["server"]
        assert len(seen["client"]) == measured.run.llm_calls > 1


@pytest.mark.wall
def test_a_graphs_own_endpoint_is_asked_as_it_is_and_tells_nothing_of_what_it_did() -> None:
    with services() as here:
        model = ChatOpenAI(model="docmind-scripted", base_url=here.addresses.openai_base_url, api_key="k")
        (measured,) = measured_on_the_wall(here, create_agent(model, []), "A", 30.0, services="own")
    assert (measured.run.outcome, measured.run.llm_calls) == ("answered", 1)
    assert math.isnan(measured.run.calls_after_deadline)


# ---- sync nodes in async runs: a thread that a cancellation leaves behind is work until its own end


GIVEN = {"question": "?"}
BUDGET_S = 0.2


def asleep(graph: str, alternative: str, decision_timeout_s: float = BUDGET_S) -> MeasuredRun:
    (measured,) = simulated(
        f"odd_graphs:{graph}", alternatives=alternative, decision_timeout_s=decision_timeout_s, given=GIVEN
    )
    return measured


def events(measured: MeasuredRun, name: str) -> list[tuple[float, str, dict[str, Any]]]:
    return [(made.at_s, made.role, made.detail) for made in measured.events if made.event == name]


# E's caller waits 50 ms more for its graph to come to rest.
@pytest.mark.parametrize(("alternative", "returned_at_s"), [("C", BUDGET_S), ("E", BUDGET_S + 0.05), ("F", BUDGET_S)])
def test_a_run_is_quiet_when_the_thread_of_a_cancelled_node_is_done(alternative: str, returned_at_s: float) -> None:
    run = asleep("napping", alternative).run
    assert run.returned_at_s == pytest.approx(returned_at_s)
    assert (run.quiescent_at_s, run.work_overrun_s) == pytest.approx((NAP_S, NAP_S - BUDGET_S))
    assert not run.work_censored


def test_the_node_ends_with_its_task_and_the_thread_with_its_work() -> None:
    measured = asleep("napping", "C")
    assert events(measured, "thread_started") == [(0.0, "nap", {"node": "nap"})]
    assert events(measured, "node_ended") == [
        (BUDGET_S, "nap", {"node": "nap", "outcome": "CancelledError", "begun_at_s": 0.0})
    ]
    (ended,) = events(measured, "thread_ended")
    assert ended == (pytest.approx(NAP_S), "nap", {"begun_at_s": 0.0, "node": "nap"})


def test_a_thread_is_told_of_with_its_node_and_the_role_of_the_outermost() -> None:
    ((_, role, detail),) = events(asleep("inside", "C"), "thread_ended")
    assert (role, detail["node"]) == ("house", "house/nap")


def test_a_thread_that_is_not_done_by_the_horizon_has_begun_and_not_ended() -> None:
    # The horizon is at 5 times the budget, before the nap is over.
    measured = asleep("napping", "C", NAP_S / 6)
    assert (measured.run.work_censored, measured.run.threads_left) == (True, 1)
    assert measured.run.quiescent_at_s == measured.run.horizon_s
    assert [len(events(measured, name)) for name in ("thread_started", "thread_ended")] == [1, 0]


def test_a_sync_run_hands_nothing_to_threads() -> None:
    measured = asleep("napping", "A")
    assert measured.run.quiescent_at_s == pytest.approx(NAP_S)
    assert events(measured, "thread_started") == events(measured, "thread_ended") == []
