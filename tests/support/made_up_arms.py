"""Made-up runs of one arm, from a short text for each; nothing here was measured."""

from __future__ import annotations

import math

import pandas as pd
from sample_runs import sample_run

from docmind_lab.tables.frames import to_frame


def arm(*ends, alternative="cooperative", timeout_s=10.0, horizon_s=50.0, first_seed=0):
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


def study_runs(*arms):
    return pd.concat(arms, ignore_index=True)
