from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from golden import assert_golden
from made_up_findings import late, left_alone, table
from sample_runs import sample_run
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings import enforcement
from docmind_lab.statistics.differences import column_values, mean_difference
from docmind_lab.statistics.shares import share_difference

MEASURES = (
    *("answered_in_time", "caller_overrun_s", "work_overrun_s", "busy_after_deadline_s", "source_recall"),
    "recall_at_deadline",
)


def ran_to_its_end(alternative: str, seed: int, returned_at_s: float = 4.0, **changes):
    """As the control, whatever it says of itself."""
    return late(alternative, seed, returned_at_s=returned_at_s, calls_after_deadline=3.0, **changes)


HUNG = late("stop_flag", 0, returned_at_s=math.nan, outcome="unfinished", stop_reason="horizon")
ANSWERED = {"outcome": "answered", "stop_reason": ""}
FAILED = {"outcome": "failed", "stop_reason": "error", "answered_in_time": False}
SIX_CALLS, CUT = {"second_budgets": "6 calls"}, {"outcome": "partial", "answered_in_time": False}
TEN = [each(seed) for seed in range(10) for each in (left_alone, lambda seed: late("cooperative", seed))]
RUNS = {
    "back by the deadline every time": [left_alone(0), left_alone(1), late("x", 0), late("x", 1)],
    "later than the deadline, and before the control": [left_alone(0), late("x", 0, returned_at_s=3.0)],
    "held once, and another time no sooner than the control": [
        left_alone(0),
        left_alone(1),
        late("x", 0),
        ran_to_its_end("x", 1),
    ],
    "as late as the control, whatever it says of itself": [
        left_alone(0),
        ran_to_its_end("x", 0, stop_reason="deadline", outcome="timed_out"),
    ],
    "as late as the control, and it says nothing": [left_alone(0), ran_to_its_end("x", 0, **ANSWERED)],
    "the deadline fell in the last step": [left_alone(0), late("x", 0, returned_at_s=4.0, **ANSWERED)],
    "neither was back by the horizon": [left_alone(0, math.nan), HUNG],
    "calls after the deadline are not known": [
        left_alone(0),
        late("x", 0, returned_at_s=4.0, calls_after_deadline=math.nan),
    ],
    "it came to its own end": [sample_run("unguarded", 0), sample_run("x", 0)],
    "another budget ended it": [
        left_alone(0, **SIX_CALLS),
        sample_run("x", 0, stop_reason="call_budget", **SIX_CALLS | CUT),
    ],
    "the deadline ended it under another budget": [
        left_alone(0, **SIX_CALLS),
        sample_run("x", 0, stop_reason="deadline", **SIX_CALLS | CUT),
    ],
    "an error before the deadline": [left_alone(0), sample_run("x", 0, **FAILED)],
    "the control ended soon after the deadline": [left_alone(0, 2.1), ran_to_its_end("x", 0, 2.1)],
    "the exact interval is of the tested runs only": [*TEN, sample_run("unguarded", 10), sample_run("cooperative", 10)],
}


def test_who_enforces_its_deadline_by_what_was_measured() -> None:
    texts = {
        name: enforcement(table(*records)).to_csv(index=False, float_format="%.6g") for name, records in RUNS.items()
    }
    assert_golden(Path(__file__).with_suffix(".txt"), texts)


def test_each_condition_is_judged_by_its_own_control_and_one_without_is_refused() -> None:
    runs = [
        left_alone(0),
        late("cooperative", 0),
        left_alone(0, fault="hang"),
        ran_to_its_end("cooperative", 0, fault="hang"),
    ]
    found = enforcement(table(*runs)).set_index("fault")["verdict"]
    assert found["none"] == "enforces"
    assert found["hang"] == "does not enforce"
    with pytest.raises(ConfigurationError, match=r"no run of unguarded at decision_timeout_s 2, fault hang"):
        enforcement(table(runs[0], runs[1], runs[3]))


# ---- A/A


def arm_with_truth(generator: np.random.Generator, first_seed: int, runs: int = 30) -> pd.DataFrame:
    """Runs whose columns are drawn from one truth: shares, skewed waits with many zeros, and recall of few levels."""
    answered = generator.random(runs) < 0.7
    frame = BASE.iloc[np.zeros(runs, dtype=int)].reset_index(drop=True)
    over_s = np.where(answered, 0.0, generator.exponential(0.5, runs))
    return frame.assign(
        run_id=[f"{first_seed + n}" for n in range(runs)],
        seed=first_seed + np.arange(runs),
        answered_in_time=answered,
        caller_overrun_s=over_s,
        work_overrun_s=over_s * 2,
        busy_after_deadline_s=over_s * generator.random(runs),
        source_recall=generator.integers(0, 3, runs) / 2,
        recall_at_deadline=generator.integers(0, 4, runs) / 3,
    )


BASE = table(sample_run("hard_timeout", 0))


def p_values(first: pd.DataFrame, second: pd.DataFrame) -> dict[str, float]:
    """Unpaired tests of each measure: with common random numbers and the same seeds both would be the same runs."""
    values = {name: [column_values(runs, name) for runs in (first, second)] for name in MEASURES}
    shares = share_difference(*(each > 0 for each in values.pop("answered_in_time")))
    means = {name: mean_difference(*both, seed=0, resamples=199).p_value for name, both in values.items()}
    return {"answered_in_time": shares.p_value, **means}


def flagged(pairs: int) -> pd.Series:
    generator = np.random.default_rng(20260)
    found = [p_values(arm_with_truth(generator, 0), arm_with_truth(generator, 1000)) for _ in range(pairs)]
    return (pd.DataFrame(found) < 0.05).sum()


def test_an_arm_is_not_told_apart_from_itself_more_often_than_by_chance() -> None:
    pairs = 40
    # As likely to be passed by a test of nominal 5 % as 41 of 500 is: below 1 in 1,000 for each measure.
    most = int(stats.binom.isf(stats.binom.sf(41, 500, 0.05), pairs, 0.05))
    counts = flagged(pairs)
    assert (counts <= most).all(), counts.to_dict()


@pytest.mark.full
def test_of_500_a_a_pairs_at_most_41_are_flagged_and_of_the_means_not_far_fewer() -> None:
    counts = flagged(500)
    assert (counts <= 41).all(), counts.to_dict()
    # 10 of 500 or fewer would be a test that finds nothing (1 in 1,000); Fisher's exact test is known to be cautious.
    assert (counts.drop("answered_in_time") > 10).all(), counts.to_dict()
