"""Graphs that were not made for the lab on the wall clock: simulated services over sockets, or their own endpoints."""

from __future__ import annotations

import math

import httpx
import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from often import often
from own_runs import EVERY, GRAPHS, measured_on_the_wall, services

SIDES = ("client", "server")


@pytest.mark.wall
@pytest.mark.parametrize("graph", often(GRAPHS, "graphs_mixed:make"))
def test_a_graph_runs_unchanged_over_sockets_under_every_alternative(graph: str) -> None:
    # A budget of no consequence: what is shown is that everything runs, is redirected, and is seen from both sides.
    with services() as here:
        runs = measured_on_the_wall(here, graph, EVERY, 30.0, side_by_side=4)
    assert [measured.run.outcome for measured in runs] == ["answered"] * 7
    for measured in runs:
        seen = {side: {c.call_id for c in measured.calls if c.seen_from == side and c.kind == "llm"} for side in SIDES}
        assert seen["client"] == seen["server"]
        assert len(seen["client"]) == measured.run.llm_calls > 1


@pytest.mark.full
@pytest.mark.wall
def test_a_deadline_that_travels_cuts_a_call_that_hangs_on_the_wall_clock_too() -> None:
    with services("hang:*") as here:
        runs = measured_on_the_wall(here, "graphs_agent:make", "A,B:propagate,E", 0.8)
    for measured in runs:
        run = measured.run
        assert run.stop_reason in ("deadline", "hard_timeout")
        # A retry of client or middleware would wait for half a second first; on an idle machine it is milliseconds.
        assert run.caller_overrun_s < 0.4
        assert run.llm_calls == 1


@pytest.mark.wall
def test_a_graphs_own_endpoint_is_asked_as_it_is_and_tells_nothing_of_what_it_did() -> None:
    with services() as here:
        model = ChatOpenAI(model="docmind-scripted", base_url=here.addresses.openai_base_url, api_key="k")
        (measured,) = measured_on_the_wall(here, create_agent(model, []), "A", 30.0, services="own")
    assert (measured.run.outcome, measured.run.llm_calls) == ("answered", 1)
    assert math.isnan(measured.run.calls_after_deadline)


@pytest.mark.wall
def test_clients_are_as_they_were_when_the_workload_is_closed() -> None:
    before = vars(httpx.HTTPTransport)["handle_request"]
    with services() as here:
        measured_on_the_wall(here, "graphs_agent:make", "A", 30.0)
    assert vars(httpx.HTTPTransport)["handle_request"] is before
