"""Runs, their calls and the rungs of a ladder, as a scrape of the meter would get them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from flat_compare import compare_by
from golden import assert_golden
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.base import Outcome
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.views.telemetry import Telemetry

pytest.importorskip("opentelemetry.exporter.prometheus")
from scraped_metrics import Scraped

ARM = {"workload": "supervisor", "alternative": "cooperative", "clock": "wall"}
CALLS = (
    call("r", "planner", 0.5, 0.9, input_tokens=120.0, output_tokens=30.0),
    call("r", "planner", 0.5, 0.9, seen_from="server", input_tokens=120.0),
    call("r", "planner", 1.9, 1.9, outcome="refused"),
    call("r", "planner", 1.0, math.nan, outcome="abandoned"),
)
RUNS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "calls are those that the client made": (CALLS, {}),
    "how a run ended, and its overrun in a bucket": (
        (),
        {"outcome": "partial", "stop_reason": "token_budget", "caller_overrun_s": 0.3},
    ),
    "nobody got an answer: the whole horizon": (
        (),
        {"outcome": "unfinished", "caller_overrun_s": math.nan, "returned_at_s": math.nan},
    ),
    "overspent by budget": ((), {"tokens_overspent": 451.0, "calls_overspent": 0.0}),
    "virtual time is kept apart": ((), {"clock": "virtual"}),
}


def test_what_is_scraped_of_each_run() -> None:
    texts = {}
    for name, (calls, changes) in RUNS.items():
        scraped, run = Scraped(), sample_run("cooperative", 0, **changes)
        Telemetry(metrics=scraped).tell([MeasuredRun(run, calls, (), Outcome(run.outcome))], {})
        counted = re.findall(r"^docmind_(?!.*_created).* (?!0\.0$).*$", scraped.text(), re.MULTILINE)
        # Of the buckets of a series the first that holds anything.
        first: dict[str, str] = {}
        for line in counted:
            first.setdefault(re.sub('le="[^"]*",', "", line), line)
        texts[name] = "\n".join(first.values())
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_no_text_of_a_user_or_a_document_is_in_any_metric(told: list[MeasuredRun]) -> None:
    scraped = Scraped()
    Telemetry(metrics=scraped).tell(told, {})
    said = scraped.text()
    assert 'docmind_runs_total{alternative="cooperative"' in said
    assert "zephyrquark" not in said
    assert "marmaladeobelisk" not in said


def test_rungs_of_a_ladder_are_counted_as_its_table_has_them() -> None:
    at_once = Scraped()
    options = {"system": "staged", "alternatives": "A", "telemetry": Telemetry(metrics=at_once)}
    study = compare_by(**options, decision_timeout_s=8.0, runs=8)
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
