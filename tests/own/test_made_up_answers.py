"""What simulated services have no answer for is answered provisionally, and every report says so."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
from langgraph.graph import END, START, StateGraph
from own_runs import simulated
from qdrant_client import QdrantClient
from typing_extensions import TypedDict

import docmind_lab as dl


class State(TypedDict, total=False):
    question: str
    found: str


def graph_of(**nodes: Any) -> Any:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    names = [START, *nodes, END]
    for before, after in itertools.pairwise(names):
        builder.add_edge(before, after)
    return builder.compile()


# ---- collections that users have


def retrieves(state: State) -> State:
    client = QdrantClient(url="http://qdrant.example.org:6333", timeout=60, check_compatibility=False)
    try:
        return {"found": str(client.query_points("berths", query=[0.1, 0.2, 0.3], limit=3).points)}
    except Exception as error:  # noqa: BLE001 - as people write it
        return {"found": f"nothing: {error}"}


def test_a_search_in_a_collection_of_the_users_own_takes_its_time_and_hangs_under_the_fault() -> None:
    graph = graph_of(retrieve=retrieves)
    (plain,) = simulated(graph, alternatives="A", decision_timeout_s=5.0, given={"question": "a"})
    assert (plain.run.outcome, plain.run.faulted_calls) == ("answered", 0)
    assert plain.run.returned_at_s > 0
    (hung,) = simulated(
        graph, alternatives="A", decision_timeout_s=5.0, given={"question": "a"}, faults="retrieval_hang:*"
    )
    assert (hung.run.outcome, hung.run.faulted_calls) == ("timed_out", 1)


def test_the_summary_says_of_which_collection_the_answers_are_made_up() -> None:
    study = dl.compare(
        graph=graph_of(retrieve=retrieves), inputs=[{"question": "a"}], runs=2, alternatives="A", progress=None
    )
    assert study.manifest["made_up_answers"] == {"collection berths": 2}
    assert any("In 2 runs the graph asked for the collection berths" in line for line in study.summary().advice)


def refused(state: State) -> State:
    reply = httpx.post("https://api.openai.com/v1/chat/completions", json={"messages": "none"})
    return {"found": str(reply.status_code)}


def test_the_summary_has_the_share_of_requests_that_failed_where_any_did() -> None:
    graph = graph_of(first=retrieves, second=refused)
    study = dl.compare(graph=graph, inputs=[{"question": "a"}], runs=2, alternatives="A", progress=None)
    assert study.manifest["failed_calls"] == {"requests": 4, "failed": 2, "node": "second"}
    said = "2 of 4 requests failed (50.0%, most of them in second)"
    assert any(line.startswith(said) for line in study.summary().advice)
    without = dl.compare(graph=graph_of(first=retrieves), inputs=[{"question": "a"}], runs=1, alternatives="A")
    assert "failed_calls" not in without.manifest
