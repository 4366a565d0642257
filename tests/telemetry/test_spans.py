"""Runs and calls as spans: the names of OpenTelemetry's conventions, and what belongs to what."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pytest
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.telemetry.tracing import finished_spans

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import SpanKind, StatusCode

START_NS = int(datetime.datetime(2026, 11, 22, 9, tzinfo=datetime.UTC).timestamp()) * 10**9
MANIFEST: dict[str, Any] = {
    "settings": {
        "llm": {"model": "m-1", "base_url": "http://user:secret@models.example:8000/v1"},
        "database": {"qdrant_url": "http://store.example"},
    },
    "design": {"corpus": "handbook"},
    "created_utc": "2026-11-22T09:00:00+00:00",
}
NAN = math.nan


def run_of(*calls: Any, error_type: str = "", **changes: Any) -> MeasuredRun:
    run = sample_run("cooperative", 0, **{"clock": "virtual"} | changes)
    return MeasuredRun(run, calls, (), Outcome(run.outcome, error_type=error_type))


def spans_of(run: MeasuredRun) -> tuple[list[Any], Any]:
    """The spans of a run's calls, and that of the run."""
    *calls, root = finished_spans([run], MANIFEST)
    return calls, root


def only_call(**changes: Any) -> Any:
    ((span,), _) = spans_of(run_of(call("r", "planner", 0.5, 0.9, **changes)))
    return span


def seconds(span: Any) -> tuple[float, float]:
    """From the run's start."""
    return (span.start_time - START_NS) / 1e9, (span.end_time - START_NS) / 1e9


def test_every_name_of_a_convention_is_one_of_the_conventions_own(told: list[MeasuredRun]) -> None:
    from opentelemetry.semconv._incubating.attributes import db_attributes
    from opentelemetry.semconv.attributes import error_attributes, server_attributes

    modules = (gen_ai, db_attributes, error_attributes, server_attributes)
    known = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    operations = {operation.value for operation in gen_ai.GenAiOperationNameValues}
    spans = finished_spans(told, MANIFEST)
    named = {name for span in spans for name in span.attributes} | {
        name for span in spans for event in span.events for name in event.attributes
    }
    assert {name for name in named if not name.startswith("docmind.")} <= known
    assert {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.agent.name",
        "gen_ai.workflow.name",
        "gen_ai.data_source.id",
        "error.type",
        "server.address",
        "server.port",
    } <= named
    assert {span.attributes["gen_ai.operation.name"] for span in spans} == {"invoke_workflow", "chat", "retrieval"}
    assert {span.attributes["gen_ai.operation.name"] for span in spans} <= operations
    assert not {name for name in named if "message" in name or "prompt" in name or "query" in name}


def test_a_request_to_the_model_is_a_chat_span_of_its_client() -> None:
    span = only_call(input_tokens=120.0, output_tokens=30.0, timeout_s=1.5)
    assert (span.name, span.kind, seconds(span)) == ("chat m-1", SpanKind.CLIENT, (0.5, 0.9))
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.agent.name": "planner",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 30,
        "server.address": "models.example",
        "server.port": 8000,
        "docmind.deadline.cap_s": 1.5,
        "docmind.deadline.remaining_at_start_s": 1.5,
        "docmind.call.attempt": 1,
    }
    assert expected.items() <= span.attributes.items()
    assert "error.type" not in span.attributes


@pytest.mark.parametrize(
    ("kind", "name", "attributes"),
    [
        ("retrieval", "retrieval handbook", {"gen_ai.data_source.id": "handbook", "server.address": "store.example"}),
        ("tool", "execute_tool planner", {"gen_ai.tool.name": "planner"}),
        ("peer", "invoke_agent planner", {"gen_ai.agent.name": "planner"}),
    ],
)
def test_each_kind_of_call_has_its_operation(kind: str, name: str, attributes: dict[str, str]) -> None:
    span = only_call(kind=kind)
    assert span.name == name
    assert attributes.items() <= span.attributes.items()
    assert "gen_ai.request.model" not in span.attributes


def test_what_is_not_known_is_left_out() -> None:
    span = only_call(input_tokens=NAN, timeout_s=NAN)
    assert "gen_ai.usage.input_tokens" not in span.attributes
    assert "docmind.deadline.cap_s" not in span.attributes
    assert not any(isinstance(value, float) and math.isnan(value) for value in span.attributes.values())


@pytest.mark.parametrize(
    ("changes", "error_type"),
    [
        ({"outcome": "error", "error_type": "HTTP 500"}, "HTTP 500"),
        ({"outcome": "timeout"}, "timeout"),
        ({"outcome": "abandoned", "ended_at_s": NAN}, "abandoned"),
        ({"outcome": "abandoned", "ended_at_s": 3.0}, ""),
    ],
)
def test_a_call_says_what_it_failed_with(changes: dict[str, Any], error_type: str) -> None:
    require_error(only_call(**changes), error_type)


def require_error(span: Any, error_type: str) -> None:
    assert span.attributes.get("error.type", "") == error_type
    assert (span.status.status_code is StatusCode.ERROR) == bool(error_type)


def test_a_call_that_never_ended_lasts_until_the_horizon_and_outlives_its_run() -> None:
    (only,), root = spans_of(run_of(call("r", "planner", 0.5, NAN, outcome="abandoned"), returned_at_s=2.0))
    assert (seconds(root)[1], seconds(only)[1]) == (2.0, 10.0)


def test_a_refused_call_is_an_event_of_the_run_for_nothing_was_sent() -> None:
    refused = call("r", "synthesis", 1.9, 1.9, outcome="refused")
    calls, root = spans_of(run_of(call("r", "planner", 0.5, 0.9), refused, returned_at_s=2.1))
    assert [event.name for event in root.events] == ["docmind.call.refused", "docmind.deadline"]
    assert root.events[0].attributes == {"gen_ai.agent.name": "synthesis", "gen_ai.operation.name": "chat"}
    assert len(calls) == 1


def test_what_the_server_saw_is_no_span_of_the_client() -> None:
    assert spans_of(run_of(call("r", "planner", 0.5, 0.9, seen_from="server")))[0] == []


@pytest.mark.parametrize(
    ("changes", "error_type"),
    [
        ({"outcome": "answered"}, ""),
        ({"outcome": "partial", "stop_reason": "token_budget"}, ""),
        ({"outcome": "timed_out", "stop_reason": "hard_timeout"}, "hard_timeout"),
        ({"outcome": "failed", "stop_reason": "error", "error_type": "KeyError"}, "KeyError"),
        ({"outcome": "unfinished", "stop_reason": "horizon", "returned_at_s": NAN}, "horizon"),
    ],
)
def test_a_run_ends_in_error_where_its_caller_got_nothing(changes: dict[str, Any], error_type: str) -> None:
    _, span = spans_of(run_of(**changes))
    require_error(span, error_type)
    assert span.attributes["docmind.outcome"] == changes["outcome"]
    assert seconds(span)[1] == (10.0 if changes["outcome"] == "unfinished" else 1.5)


def test_the_deadline_and_the_budgets_of_a_run_are_on_its_span() -> None:
    _, span = spans_of(run_of(token_budget=6000.0, tokens_spent=5719.0, caller_overrun_s=0.25))
    expected = {
        "docmind.deadline.timeout_s": 2.0,
        "docmind.deadline.caller_overrun_s": 0.25,
        "docmind.deadline.propagated": True,
        "docmind.budget.tokens": 6000.0,
        "docmind.budget.tokens_spent": 5719.0,
    }
    assert expected.items() <= span.attributes.items()
    assert "docmind.budget.calls" not in span.attributes


def test_services_without_an_address_have_none_on_their_spans() -> None:
    *_, root = finished_spans([run_of()], {"created_utc": MANIFEST["created_utc"]})
    assert seconds(root) == (0.0, 1.5)
    made = finished_spans([run_of(call("r", "planner", 0.5, 0.9))], {"created_utc": MANIFEST["created_utc"]})
    assert made[0].name == "chat"
    assert "server.address" not in made[0].attributes
