"""Made-up runs tables with a known answer, for the tests of what findings make of them."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
from sample_runs import sample_run

from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.records import RunRecord

BUDGET_S = 2.0
LETTERS = {"A": "cooperative", "B": "hard_timeout", "C": "async_cancellation", "D": "stop_flag", "E": "hybrid"}


def late(alternative: str, seed: int, **changes: Any) -> RunRecord:
    """A run that its budget ended at the deadline, with nothing to show and nothing left behind."""
    values: dict[str, Any] = {
        "outcome": "timed_out",
        "stop_reason": "deadline",
        "answered_in_time": False,
        "returned_at_s": BUDGET_S,
        "source_recall": 0.0,
        "recall_at_deadline": 0.5,
    }
    return sample_run(alternative, seed, **(values | changes))


def arm(alternative: str, runs: int = 40, **columns: Any) -> list[RunRecord]:
    """Runs of an arm; a column is a value, a list with one for each repeat, or a function of the repeat."""

    def at(value: Any, repeat: int) -> Any:
        return value(repeat) if callable(value) else value[repeat] if isinstance(value, list) else value

    return [
        sample_run(alternative, repeat, **{name: at(value, repeat) for name, value in columns.items()})
        for repeat in range(runs)
    ]


def left_alone(seed: int, returned_at_s: float = 4.0, **changes: Any) -> RunRecord:
    """A run of the control that answered late; NaN: not by the horizon."""
    unfinished = math.isnan(returned_at_s)
    values: dict[str, Any] = {
        "outcome": "unfinished" if unfinished else "answered",
        "stop_reason": "horizon" if unfinished else "",
        "answered_in_time": False,
        "returned_at_s": returned_at_s,
        "caller_overrun_s": returned_at_s - BUDGET_S,
        "calls_after_deadline": 3.0,
        "busy_after_deadline_s": 1.0,
        "source_recall": 0.0 if unfinished else 1.0,
        "recall_at_deadline": 0.5,
    }
    return sample_run("unguarded", seed, **(values | changes))


def table(*records: RunRecord) -> pd.DataFrame:
    """Their `runs` table, with run ids of their own."""
    frame = to_frame("runs", list(records))
    return frame.assign(run_id=[f"run-{number}" for number in range(len(frame))])


def four_options(seeds: int = 24, **of_arm: dict[str, Any]) -> pd.DataFrame:
    """The control and A to E, half of the seeds in time under each; of_arm: what is different of an arm's late runs."""
    records = []
    for seed in range(seeds):
        in_time = seed % 2 == 0
        records.append(sample_run("unguarded", seed) if in_time else left_alone(seed))
        for letter, alternative in LETTERS.items():
            changes = {"source_recall": 0.5, "outcome": "partial", **of_arm.get(letter, {})}
            records.append(sample_run(alternative, seed) if in_time else late(alternative, seed, **changes))
    return table(*records)


BUDGET_ENDED = {"outcome": "failed", "answered_in_time": False, "stop_reason": "call_budget", "source_recall": 0.0}


def budgeted(alternative: str, seed: int, used: float, limit: float = 6.0, **changes: Any) -> RunRecord:
    """A run under a budget of calls that used so many of them."""
    shared = {"second_budgets": f"{limit:g} calls", "call_budget": limit, "calls_overspent": max(0.0, used - limit)}
    propagates = alternative in ("cooperative", "hybrid")
    return sample_run(alternative, seed, **shared | {"deadline_propagation": propagates} | changes)


def ended(*ends, alternative="cooperative", timeout_s=10.0, horizon_s=50.0, first_seed=0):
    """Runs of an arm. ends: (outcome, returned_at_s) for each seed, counted from first_seed."""
    records = [
        sample_run(
            alternative,
            seed,
            outcome=outcome,
            returned_at_s=math.nan if outcome == "unfinished" else at_s,
            decision_timeout_s=timeout_s,
            horizon_s=horizon_s,
            answered_in_time=outcome == "answered" and at_s <= timeout_s,
            caller_overrun_s=math.nan if outcome == "unfinished" else max(0.0, at_s - timeout_s),
        )
        for seed, (outcome, at_s) in enumerate(ends, start=first_seed)
    ]
    return to_frame("runs", records)
