"""A/A: an arm is not told apart from itself more often than by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_up_findings import table
from sample_runs import sample_run

from docmind_lab.statistics.differences import column_values, mean_difference
from docmind_lab.statistics.shares import share_difference

MEASURES = (
    *("answered_in_time", "caller_overrun_s", "work_overrun_s", "busy_after_deadline_s", "source_recall"),
    "recall_at_deadline",
)


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


@pytest.mark.full
def test_of_500_a_a_pairs_at_most_41_are_flagged_and_of_the_means_not_far_fewer() -> None:
    counts = flagged(500)
    assert (counts <= 41).all(), counts.to_dict()
    # 10 of 500 or fewer would be a test that finds nothing (1 in 1,000); Fisher's exact test is known to be cautious.
    assert (counts.drop("answered_in_time") > 10).all(), counts.to_dict()
