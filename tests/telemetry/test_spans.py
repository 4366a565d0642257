"""Runs and calls as spans: the names of OpenTelemetry's conventions, and what belongs to what."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.views.telemetry.run_spans import finished_spans

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

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


RUNS = {
    "a request to the model": run_of(
        call("r", "planner", 0.5, 0.9, input_tokens=120.0, output_tokens=30.0, timeout_s=1.5)
    ),
    "each kind of call": run_of(*(call("r", "planner", 0.5, 0.9, kind=kind) for kind in ("retrieval", "tool", "peer"))),
    "what is not known": run_of(call("r", "planner", 0.5, 0.9, input_tokens=NAN, timeout_s=NAN)),
    "what calls failed with": run_of(
        call("r", "planner", 0.5, 0.9, outcome="error", error_type="HTTP 500"),
        call("r", "planner", 0.5, 0.9, outcome="timeout"),
        # It never ended: until the horizon, after the run. Or it came when nobody waited, which is no error.
        call("r", "planner", 0.5, NAN, outcome="abandoned"),
        call("r", "planner", 0.5, 3.0, outcome="abandoned"),
    ),
    "a refused call, for which nothing was sent": run_of(
        call("r", "planner", 0.5, 0.9), call("r", "synthesis", 1.9, 1.9, outcome="refused"), returned_at_s=2.1
    ),
    "what the server saw": run_of(call("r", "planner", 0.5, 0.9, seen_from="server")),
    "part of an answer": run_of(outcome="partial", stop_reason="token_budget"),
    "nothing in time": run_of(outcome="timed_out", stop_reason="hard_timeout"),
    "an error": run_of(outcome="failed", stop_reason="error", error_type="KeyError"),
    "nothing by the horizon": run_of(outcome="unfinished", stop_reason="horizon", returned_at_s=NAN),
    "a budget of tokens": run_of(token_budget=6000.0, tokens_spent=5719.0, caller_overrun_s=0.25),
}


def described(span: Any) -> str:
    """A span with its instants in seconds from the run's start."""
    at_s = [(each - START_NS) / 1e9 for each in (span.start_time, span.end_time)]
    events = [f"  event {event.name} {dict(sorted(event.attributes.items()))}" for event in span.events]
    attributes = [f"  {name}: {value}" for name, value in sorted(span.attributes.items())]
    head = f"{span.name}, {span.kind.name}, {at_s[0]:g} to {at_s[1]:g} s, {span.status.status_code.name}"
    return "\n".join([head, *attributes, *events])


def test_what_the_spans_of_each_run_say() -> None:
    texts = {name: "\n".join(map(described, finished_spans([run], MANIFEST))) for name, run in RUNS.items()}
    nothing_else = {"created_utc": MANIFEST["created_utc"]}
    spans = finished_spans([run_of(call("r", "planner", 0.5, 0.9))], nothing_else)
    texts["services without an address"] = "\n".join(map(described, spans))
    assert_golden(Path(__file__).with_suffix(".txt"), texts)
