"""Runs, their calls and the rungs of a ladder, as a scrape of the meter would get them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from sample_calls import call
from sample_runs import sample_run

import docmind_lab as dl
from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.interfaces.telemetry import Telemetry

pytest.importorskip("opentelemetry.exporter.prometheus")
from scraped_metrics import Scraped

ARM = {"workload": "supervisor", "alternative": "cooperative", "clock": "wall"}


def observed(*calls: Any, **changes: Any) -> Scraped:
    scraped, run = Scraped(), sample_run("cooperative", 0, **changes)
    Telemetry(metrics=scraped).tell([MeasuredRun(run, calls, (), Outcome(run.outcome))], {})
    return scraped


def test_runs_are_counted_by_how_they_ended() -> None:
    scraped = observed(outcome="partial", stop_reason="token_budget")
    labels = {**ARM, "outcome": "partial", "stop_reason": "token_budget"}
    assert scraped.value("docmind_runs_total", **labels) == 1


def test_an_overrun_falls_into_its_bucket_and_none_at_all_into_one_of_its_own() -> None:
    late, in_time = observed(caller_overrun_s=0.3), observed()
    name = "docmind_run_caller_overrun_seconds"
    assert [late.value(f"{name}_bucket", **ARM, le=le) for le in ("0.0", "0.1", "0.5")] == [0, 0, 1]
    assert in_time.value(f"{name}_bucket", **ARM, le="0.0") == 1


def test_a_run_that_nobody_got_an_answer_of_counts_with_its_whole_horizon() -> None:
    scraped = observed(outcome="unfinished", caller_overrun_s=math.nan, returned_at_s=math.nan)
    assert scraped.value("docmind_run_caller_overrun_seconds_sum", **ARM) == 8.0


def test_overspending_is_counted_by_budget() -> None:
    scraped = observed(tokens_overspent=451.0, calls_overspent=0.0)
    values = [
        scraped.value("docmind_runs_overspent_total", **ARM, budget=budget) for budget in ("tokens", "calls", "cost")
    ]
    assert values == [1, None, None]


def test_calls_are_those_that_the_client_made() -> None:
    scraped = observed(
        call("r", "planner", 0.5, 0.9, input_tokens=120.0, output_tokens=30.0),
        call("r", "planner", 0.5, 0.9, seen_from="server", input_tokens=120.0),
        call("r", "planner", 1.9, 1.9, outcome="refused"),
        call("r", "planner", 1.0, math.nan, outcome="abandoned"),
    )
    labels = {**ARM, "role": "planner", "kind": "llm"}
    counted = {
        outcome: scraped.value("docmind_calls_total", **labels, outcome=outcome)
        for outcome in ("ok", "refused", "abandoned")
    }
    assert counted == {"ok": 1, "refused": 1, "abandoned": 1}
    assert scraped.value("docmind_call_seconds_count", **labels) == 1
    assert scraped.value("docmind_tokens_total", **labels, direction="input") == 120


def test_seconds_of_virtual_time_are_kept_apart() -> None:
    assert observed(clock="virtual").value("docmind_run_work_overrun_seconds_count", **ARM) is None


def test_no_text_of_a_user_or_a_document_is_in_any_metric(told: list[MeasuredRun]) -> None:
    scraped = Scraped()
    Telemetry(metrics=scraped).tell(told, {})
    said = scraped.text()
    assert 'docmind_runs_total{alternative="cooperative"' in said
    assert "zephyrquark" not in said
    assert "marmaladeobelisk" not in said


def test_rungs_of_a_ladder_are_counted_as_its_table_has_them() -> None:
    at_once = Scraped()
    options = {"workload": "staged", "alternatives": "A", "telemetry": Telemetry(metrics=at_once)}
    study = dl.compare(8.0, 8, **options)
    arm = {**ARM, "workload": "staged", "clock": "virtual"}
    stages = study.table("stages")
    ended = stages[stages["ended_at_s"].notna()]
    for (stage, outcome), rows in ended.groupby(["stage", "outcome"], observed=True):
        labels = {**arm, "stage": stage, "outcome": outcome}
        assert at_once.value("docmind_stage_seconds_count", **labels) == len(rows)
        assert at_once.value("docmind_stage_seconds_sum", **labels) == pytest.approx(rows["duration_s"].sum())
    fell_back = {stage: int(rows["fell_back"].sum()) for stage, rows in stages.groupby("stage", observed=True)}
    assert sum(fell_back.values()) > 0
    to_generated = at_once.value("docmind_fallbacks_total", **arm, from_stage="suggested", to_stage="generated")
    assert (to_generated or 0) == fell_back["suggested"]
