"""Runs and calls as Prometheus metrics."""

from __future__ import annotations

import math
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.telemetry import RunMetrics

ARM = {"workload": "supervisor", "alternative": "cooperative", "clock": "wall"}


def observed(*calls: Any, **changes: Any) -> CollectorRegistry:
    metrics = RunMetrics(CollectorRegistry())
    run = sample_run("cooperative", 0, **changes)
    metrics.observe(MeasuredRun(run, calls, (), Outcome(run.outcome)))
    return metrics.registry


def test_runs_are_counted_by_how_they_ended() -> None:
    registry = observed(outcome="partial", stop_reason="token_budget")
    labels = {**ARM, "outcome": "partial", "stop_reason": "token_budget"}
    assert registry.get_sample_value("docmind_runs_total", labels) == 1


def test_an_overrun_falls_into_its_bucket_and_none_at_all_into_one_of_its_own() -> None:
    late, in_time = observed(caller_overrun_s=0.3), observed()
    name = "docmind_run_caller_overrun_seconds"
    assert [late.get_sample_value(f"{name}_bucket", {**ARM, "le": le}) for le in ("0.0", "0.1", "0.5")] == [0, 0, 1]
    assert in_time.get_sample_value(f"{name}_bucket", {**ARM, "le": "0.0"}) == 1


def test_a_run_that_nobody_got_an_answer_of_counts_with_its_whole_horizon() -> None:
    registry = observed(outcome="unfinished", caller_overrun_s=math.nan, returned_at_s=math.nan)
    assert registry.get_sample_value("docmind_run_caller_overrun_seconds_sum", ARM) == 8.0


def test_overspending_is_counted_by_budget() -> None:
    registry = observed(tokens_overspent=451.0, calls_overspent=0.0)
    values = [
        registry.get_sample_value("docmind_runs_overspent_total", {**ARM, "budget": budget})
        for budget in ("tokens", "calls", "cost")
    ]
    assert values == [1, None, None]


def test_calls_are_those_that_the_client_made() -> None:
    registry = observed(
        call("r", "planner", 0.5, 0.9, input_tokens=120.0, output_tokens=30.0),
        call("r", "planner", 0.5, 0.9, seen_from="server", input_tokens=120.0),
        call("r", "planner", 1.9, 1.9, outcome="refused"),
        call("r", "planner", 1.0, math.nan, outcome="abandoned"),
    )
    labels = {**ARM, "role": "planner", "kind": "llm"}
    counted = {
        outcome: registry.get_sample_value("docmind_calls_total", {**labels, "outcome": outcome})
        for outcome in ("ok", "refused", "abandoned")
    }
    assert counted == {"ok": 1, "refused": 1, "abandoned": 1}
    assert registry.get_sample_value("docmind_call_seconds_count", labels) == 1
    assert registry.get_sample_value("docmind_tokens_total", {**labels, "direction": "input"}) == 120


def test_seconds_of_virtual_time_are_kept_apart() -> None:
    assert observed(clock="virtual").get_sample_value("docmind_run_work_overrun_seconds_count", ARM) is None


def test_no_text_of_a_user_or_a_document_is_in_any_metric(told: list[MeasuredRun]) -> None:
    metrics = RunMetrics()
    for run in told:
        metrics.observe(run)
    said = generate_latest(metrics.registry).decode()
    assert 'docmind_runs_total{alternative="cooperative"' in said
    assert "zephyrquark" not in said
    assert "marmaladeobelisk" not in said
