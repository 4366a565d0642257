"""Which node of a graph a call was made in: the tables of a study do not say it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import sample_calls

from docmind_lab.core.levels import NAN
from docmind_lab.tables.traces.trace_tables import Span
from docmind_lab.tables.traces.traced_studies import _RunOfStudy


def node(path: str, role: str, begun_at_s: float, ended_at_s: float) -> list[dict[str, Any]]:
    ended = json.dumps({"node": path, "begun_at_s": begun_at_s, "outcome": "ok"})
    return [
        {"event": "node_started", "role": role, "at_s": begun_at_s, "detail": json.dumps({"node": path})},
        {"event": "node_ended", "role": role, "at_s": ended_at_s, "detail": ended},
    ]


def call(call_id: str, role: str, started_at_s: float, ended_at_s: float, **changes: Any) -> dict[str, Any]:
    return dataclasses.asdict(sample_calls.call("r", role, started_at_s, ended_at_s, call_id=call_id, **changes))


def spans(calls: list[dict[str, Any]], *nodes: list[dict[str, Any]], busy_s: float = NAN) -> list[Span]:
    events = sorted((event for each in nodes for event in each), key=lambda event: event["at_s"])
    run = {"run_id": "r", "horizon_s": 60.0, "busy_after_deadline_s": busy_s}
    return _RunOfStudy(run, calls, events, adapts=False).spans()


def parents(calls: list[dict[str, Any]], *nodes: list[dict[str, Any]]) -> list[str]:
    return [span.parent_id for span in spans(calls, *nodes) if span.kind == "llm"]


def test_a_tool_is_no_call_of_a_server_beside_the_request_that_it_makes() -> None:
    tool, alone = (call(name, "desk", 0, 5, kind="tool") for name in ("t", "alone"))
    request = call("t/1", "desk", 1, 3, kind="tool", parent_call_id="t")
    kinds = {span.span_id: span.kind for span in spans([tool, alone, request])}
    # Without a server's log, a tool without a request of its own may be one that was not seen.
    assert kinds == {"t#1": "agent", "alone#1": "tool", "t/1#1": "tool"}
    logged = spans([tool, alone, request, {**request, "seen_from": "server"}], busy_s=0.0)
    assert {span.span_id: span.kind for span in logged} == {"t#1": "agent", "alone#1": "agent", "t/1#1": "tool"}


def test_a_call_belongs_to_the_node_of_its_role_at_work_all_the_while_or_to_one_that_began_and_ended_with_it() -> None:
    nodes = node("planner", "planner", 0, 6), node("writer", "writer", 1, 6)
    assert parents([call("c", "planner", 2, 5)], *nodes) == ["node/planner/1"]
    nodes = node("search", "search", 2, 5), node("writer/draft", "writer", 1, 9)
    assert parents([call("c", "router", 2, 5)], *nodes) == ["node/search/1"]


def test_a_call_that_outlives_its_node_belongs_to_the_one_that_called_for_this_role_before() -> None:
    nodes = node("search", "search", 0, 4), node("writer", "writer", 2, 6)
    calls = [call("first", "router", 0.5, 1), call("second", "router", 3, 8)]
    assert parents(calls, *nodes) == ["node/search/1", "node/search/1"]
