"""What is recommended for runs of every sort: `test_recommendation.txt` has each of them with its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import BUDGET_ENDED, budgeted, late, table
from sample_calls import call
from sample_runs import sample_run

from docmind_lab.alternatives.controls import FakeTimeout
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import recommend
from docmind_lab.findings.recommendation import runs_to_settle
from docmind_lab.statistics.shares import share_interval
from docmind_lab.tables.frames import to_frame
from docmind_lab.tables.records import RunRecord

Cells = tuple[tuple[float, int, int], ...]


def arm_runs(budget_s: float, in_time: int, runs: int, alternative: str = "cooperative", **changes: Any) -> list:
    shared = {"decision_timeout_s": budget_s, "horizon_s": 5 * budget_s} | changes
    answered = [sample_run(alternative, seed, **shared) for seed in range(in_time)]
    return answered + [late(alternative, seed, returned_at_s=budget_s, **shared) for seed in range(in_time, runs)]


def sweep(*cells: tuple[float, int, int], **changes: Any) -> pd.DataFrame:
    """Runs with so many in time at each timeout: (seconds, in time, runs)."""
    return table(*(run for cell in cells for run in arm_runs(*cell, **changes)))


def failing(seeds: range, alternative: str = "cooperative", **changes: Any) -> list[RunRecord]:
    """Runs that failed by themselves soon after their start."""
    values = {
        "outcome": "failed",
        "stop_reason": "error",
        "answered_in_time": False,
        "decision_timeout_s": 10.0,
        "returned_at_s": 0.1,
        "llm_calls": 0,
        "retrieval_calls": 0,
        "error_type": "ValueError",
        "error_node": "work",
        "deadline_propagation": alternative == "cooperative",
    }
    return [sample_run(alternative, seed, **(values | changes)) for seed in seeds]


def costly() -> pd.DataFrame:
    """Late work and waits at the smaller of two timeouts; 80 runs are enough for a p90 and not for a p95."""
    runs = sweep((20.0, 80, 80), (30.0, 80, 80), alternative="hard_timeout")
    at_20 = runs["decision_timeout_s"] == 20.0
    runs.loc[at_20, ["busy_after_deadline_s", "tokens_after_deadline", "caller_overrun_s"]] = [1.5, 40.0, 0.25]
    return runs


def few_with(overrun_s: float) -> pd.DataFrame:
    runs = sweep((20.0, 10, 10))
    runs.loc[0, "caller_overrun_s"] = overrun_s
    return runs


def correlated() -> pd.DataFrame:
    at = {
        "typical": ((10.0, 80, 80), (20.0, 80, 80)),
        "typical?correlation=0.5": ((10.0, 60, 80), (20.0, 80, 80)),
        "typical?correlation=0.9": ((10.0, 40, 80), (20.0, 60, 80)),
    }
    return pd.concat([sweep(*cells, latency_profile=name) for name, cells in at.items()], ignore_index=True)


# A client that may not wait as long as a server asks gives up at once: a longer deadline may cure it.
GIVES_UP = {"llm_calls": 3, "error_type": "RateLimitError"}
WAITS = {"outcome": "interrupted", "stop_reason": "interrupted", "error_type": "", "error_node": "ask"}
PAST_BUDGET = [budgeted("hard_timeout", seed, 9.0) for seed in range(80)]
HALF_GAVE_UP = [*arm_runs(10.0, 20, 20), *failing(range(20, 40), **GIVES_UP)]
RUNS: Mapping[str, Callable[[], pd.DataFrame]] = {
    "the smallest that reaches the target": lambda: sweep((10.0, 60, 80), (20.0, 80, 80), (30.0, 80, 80)),
    "73 without a failure": lambda: sweep((10.0, 73, 73)),
    "72 without a failure": lambda: sweep((10.0, 72, 72)),
    "the first failure ends the search": lambda: sweep((10.0, 80, 80), (20.0, 70, 80), (30.0, 80, 80)),
    "surely below": lambda: sweep((10.0, 40, 80)),
    "so few runs that they do not show a share below": lambda: sweep((10.0, 2, 3), (20.0, 1, 1), (30.0, 0, 1)),
    "not shown": lambda: sweep((10.0, 19, 20)),
    "open at several timeouts": lambda: sweep((10.0, 80, 80), (20.0, 60, 80), (40.0, 79, 80), (80.0, 80, 80)),
    "below in a replay, where it is a lower bound": lambda: sweep((10.0, 40, 80), latency_profile="recorded"),
    "latencies that are independent": lambda: sweep((10.0, 80, 80), latency_profile="typical"),
    "latencies with several correlations": correlated,
    "what it costs": costly,
    "callers that waited": lambda: few_with(0.4),
    "a caller that was not back by the horizon": lambda: few_with(math.nan),
    "no log of a server": lambda: sweep((20.0, 80, 80)).assign(
        busy_after_deadline_s=math.nan, tokens_after_deadline=math.nan
    ),
    "several that reach it": lambda: table(
        *arm_runs(20.0, 80, 80, "hard_timeout", busy_after_deadline_s=1.0),
        *arm_runs(20.0, 80, 80, "native"),
        *arm_runs(20.0, 80, 80, "async_cancellation"),
        *arm_runs(20.0, 60, 80, "cooperative"),
    ),
    "two conditions": lambda: table(*arm_runs(20.0, 80, 80), *arm_runs(20.0, 0, 80, fault="hang")),
    "half failed": lambda: table(*arm_runs(10.0, 20, 20), *failing(range(20, 40))),
    "one failed of 20": lambda: table(*arm_runs(10.0, 19, 19), *failing(range(19, 20))),
    "two failed of 21": lambda: table(*arm_runs(10.0, 19, 19), *failing(range(19, 21))),
    "a quarter waits for a person": lambda: table(*arm_runs(10.0, 30, 30), *failing(range(30, 40), **WAITS)),
    "some failed and some were late": lambda: table(*arm_runs(10.0, 40, 70), *failing(range(70, 80))),
    "some were late and some failed": lambda: table(*arm_runs(10.0, 40, 70), *failing(range(70, 80))),
    "failed under a deadline that they looked at": lambda: table(*HALF_GAVE_UP),
    "the same, and the control answered": lambda: table(
        *HALF_GAVE_UP,
        *(sample_run("unguarded", seed, decision_timeout_s=10.0, horizon_s=50.0) for seed in range(20, 40)),
    ),
    "the same, and the control failed too": lambda: table(
        *HALF_GAVE_UP, *failing(range(20, 40), "unguarded", **GIVES_UP)
    ),
    "a budget ended every run": lambda: table(
        *(budgeted("cooperative", seed, 6.0, **BUDGET_ENDED) for seed in range(80))
    ),
    "reached by going past a budget": lambda: table(*PAST_BUDGET),
    "the same beside one that keeps it": lambda: table(
        *PAST_BUDGET, *(budgeted("cooperative", seed, 6.0) for seed in range(80))
    ),
    "several errors": lambda: table(
        *arm_runs(10.0, 20, 20),
        *failing(range(20, 35)),
        *failing(range(35, 40), error_type="KeyError", error_node=""),
    ),
}

TARGETS = {
    "callers that waited": 0.6,
    "a caller that was not back by the horizon": 0.6,
    "some were late and some failed": 0.7,
}


def test_every_recommendation_is_the_one_that_was_read() -> None:
    texts = {}
    for name, runs in RUNS.items():
        found = recommend(runs(), target=TARGETS.get(name, 0.95))
        row, steps = found.frame.iloc[0].drop(["endings", "shorter"]), found.steps
        values = {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
        numbers = ", ".join(f"{key} {value}" for key, value in values.items())
        texts[name] = f"{found.text()}\n\n{numbers}\n{steps.round(4).to_string(index=False)}"
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


@pytest.mark.parametrize(("shared", "said"), [(0.9, "is its session's"), (0.0, "not told from chance")])
def test_a_live_studys_own_calls_are_checked_for_slowness_that_they_share(shared: float, said: str) -> None:
    """Trust 6: where a provider is slow for minutes, the calls of a run are slow together."""
    rng = np.random.default_rng(3)
    runs = sweep((10.0, 80, 80), latency_profile="")
    calls = []
    for run_id in runs["run_id"]:
        of_run = rng.standard_normal()
        for number in range(4):
            score = math.sqrt(shared) * of_run + math.sqrt(1 - shared) * rng.standard_normal()
            calls.append(call(run_id, "planner", 0.0, float(np.exp(score)), f"1.0.{number}"))
    sentence = recommend(runs, calls=to_frame("calls", calls)).sentences[-1]
    assert said in sentence
    assert "measure at the hours that matter" in sentence
    few = recommend(runs, calls=to_frame("calls", calls[:8])).sentences[-1]
    assert few.startswith("Too few runs to tell whether the calls of a run are slow together.")


@pytest.mark.parametrize(("successes", "runs", "target"), [(20, 20, 0.95), (98, 100, 0.95), (9, 10, 0.8)])
def test_the_missing_runs_are_the_fewest_that_do(successes: int, runs: int, target: float) -> None:
    needed = runs + int(runs_to_settle(successes / runs, runs, target))
    # At the same share, which a whole number of answers has only in multiples of the runs there were.
    assert share_interval(successes * needed, runs * needed).low >= target
    fewer = round(successes / runs * (needed - 1) * 1000) / 1000
    z, n = 1.959963984540054, needed - 1
    share = fewer / n
    centre, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    assert (centre - half) / (1 + z * z / n) < target


def test_negative_controls_are_never_recommended() -> None:
    runs = [*arm_runs(20.0, 80, 80), *arm_runs(20.0, 80, 80, "unguarded"), *arm_runs(20.0, 80, 80, FakeTimeout.name)]
    assert recommend(table(*runs)).frame["alternative"].tolist() == ["cooperative"]
    for name in ("unguarded", FakeTimeout.name):
        with pytest.raises(ConfigurationError, match="no arm that enforces a deadline"):
            recommend(table(*arm_runs(20.0, 80, 80, name)))


@pytest.mark.parametrize("changes", [{"target": 0.0}, {"target": 1.0}, {"confidence": 1.0}])
def test_targets_and_confidences_that_cannot_be_had_are_refused(changes: dict[str, float]) -> None:
    (name,) = changes
    with pytest.raises(ConfigurationError, match=name):
        recommend(sweep((20.0, 80, 80)), **changes)


def test_how_the_runs_are_made_that_would_settle_it_is_said_for_a_sweep_and_a_comparison() -> None:
    of_sweep, of_comparison = (recommend(sweep((10.0, 72, 72)), is_sweep=each) for each in (True, False))
    assert of_sweep.how_to_settle() == 'To settle what is open: dl.sweep({**design, "repeats": 73}).'
    assert of_sweep.how_to_settle(in_python=False).endswith(
        "repeats = 73 in its file, then docmind-lab sweep STUDY.toml."
    )
    assert of_comparison.how_to_settle() == "To settle what is open: dl.compare(runs=73, …)."
    assert "docmind-lab compare --runs 73" in of_comparison.how_to_settle(in_python=False)
