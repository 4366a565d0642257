from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from made_up_findings import late, left_alone, table
from sample_runs import sample_run
from scipy import stats

from docmind_lab.analysis.findings import aa, enforcement
from docmind_lab.analysis.findings.controls import AA_MEASURES
from docmind_lab.core.errors import ConfigurationError


def verdict(*records) -> str:
    (row,) = enforcement(table(*records)).to_dict("records")
    return row["verdict"]


def ran_to_its_end(alternative: str, seed: int, returned_at_s: float = 4.0, **changes):
    """As the control, whatever it says of itself."""
    return late(alternative, seed, returned_at_s=returned_at_s, calls_after_deadline=3.0, **changes)


def test_back_by_the_deadline_every_time_is_enforcement() -> None:
    assert verdict(left_alone(0), left_alone(1), late("cooperative", 0), late("cooperative", 1)) == "enforces"


def test_an_arm_that_stops_later_than_the_deadline_but_before_the_control_is_late() -> None:
    assert verdict(left_alone(0), late("stop_flag", 0, returned_at_s=3.0, stop_reason="stop_flag")) == "late"
    # Held once, and another time no sooner than the control.
    assert verdict(left_alone(0), left_alone(1), late("x", 0), ran_to_its_end("x", 1)) == "late"


def test_an_arm_that_is_back_when_the_control_is_enforces_nothing_whatever_it_says_of_itself() -> None:
    for says in ("deadline", "hard_timeout", ""):
        outcome = "timed_out" if says else "answered"
        assert verdict(left_alone(0), ran_to_its_end("x", 0, stop_reason=says, outcome=outcome)) == "does not enforce"


def test_a_run_in_whose_last_step_the_deadline_fell_proves_nothing_against_anybody() -> None:
    answered = {"outcome": "answered", "stop_reason": ""}
    assert verdict(left_alone(0), late("stop_flag", 0, returned_at_s=4.0, **answered)) == "undecided"
    hung = late("stop_flag", 0, returned_at_s=math.nan, outcome="unfinished", stop_reason="horizon")
    assert verdict(left_alone(0, math.nan), hung) == "undecided"
    assert verdict(left_alone(0), late("x", 0, returned_at_s=4.0, calls_after_deadline=math.nan)) == "undecided"


def test_a_run_that_came_to_its_own_end_is_no_evidence_of_enforcement() -> None:
    assert verdict(sample_run("unguarded", 0), sample_run("cooperative", 0)) == "not tested"
    # An error before the deadline is none either, though the control went on past it; nor an end soon after it.
    failed = sample_run("x", 0, outcome="failed", stop_reason="error", answered_in_time=False)
    assert verdict(left_alone(0), failed) == "not tested"
    assert verdict(left_alone(0, 2.1), ran_to_its_end("x", 0, 2.1)) == "not tested"


def test_the_interval_is_exact_and_of_the_tested_runs_only() -> None:
    records = [left_alone(seed) for seed in range(10)] + [sample_run("unguarded", 10)]
    records += [late("cooperative", seed) for seed in range(10)] + [sample_run("cooperative", 10)]
    row = enforcement(table(*records)).iloc[0]
    assert (row["runs"], row["tested"], row["held"]) == (11, 10, 10)
    assert row["held_low"] == pytest.approx(0.025 ** (1 / 10))
    assert row["held_high"] == 1.0


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


def flagged(pairs: int) -> pd.Series:
    generator = np.random.default_rng(20260)
    found = [
        aa(arm_with_truth(generator, 0), arm_with_truth(generator, 1000), resamples=199).set_index("measure")["flagged"]
        for _ in range(pairs)
    ]
    return pd.DataFrame(found).sum()


def test_an_arm_is_not_told_apart_from_itself_more_often_than_by_chance() -> None:
    pairs = 40
    # As likely to be passed by a test of nominal 5 % as 41 of 500 is: below 1 in 1,000 for each measure.
    most = int(stats.binom.isf(stats.binom.sf(41, 500, 0.05), pairs, 0.05))
    counts = flagged(pairs)
    assert list(counts.index) == list(AA_MEASURES)
    assert (counts <= most).all(), counts.to_dict()


@pytest.mark.full
def test_of_500_a_a_pairs_at_most_41_are_flagged_and_of_the_means_not_far_fewer() -> None:
    counts = flagged(500)
    assert (counts <= 41).all(), counts.to_dict()
    # 10 of 500 or fewer would be a test that finds nothing (1 in 1,000); Fisher's exact test is known to be cautious.
    assert (counts.drop("answered_in_time") > 10).all(), counts.to_dict()


def test_a_real_difference_is_flagged() -> None:
    generator = np.random.default_rng(1)
    worse = arm_with_truth(generator, 1000).assign(caller_overrun_s=lambda runs: runs["caller_overrun_s"] + 1.0)
    found = aa(arm_with_truth(generator, 0), worse, resamples=999).set_index("measure")
    assert found.loc["caller_overrun_s", "flagged"]
    assert found.loc["caller_overrun_s", "difference"] == pytest.approx(-1.0, abs=0.3)
    assert found.loc["caller_overrun_s", "high"] < 0


def test_unknown_measures_are_left_out_and_an_unfinished_run_is_not() -> None:
    generator = np.random.default_rng(2)
    first, second = arm_with_truth(generator, 0), arm_with_truth(generator, 1000)
    second.loc[0, ["busy_after_deadline_s", "caller_overrun_s"]] = math.nan
    measures = aa(first, second, resamples=99)["measure"].tolist()
    assert "busy_after_deadline_s" not in measures
    assert "caller_overrun_s" in measures


def test_what_is_no_a_a_is_refused_by_name() -> None:
    one = table(*(sample_run("cooperative", seed) for seed in range(3)))
    other = table(*(sample_run("cooperative", seed) for seed in range(3, 6)))
    with pytest.raises(ConfigurationError, match="1 seeds are in both: with common random numbers"):
        aa(one, table(*(sample_run("cooperative", seed) for seed in range(2, 5))))
    with pytest.raises(ConfigurationError, match="an A/A is of one arm, not of A  cooperative, B  hard timeout"):
        aa(one, other.assign(alternative="hard_timeout"))
    with pytest.raises(ConfigurationError, match="several values of fault"):
        aa(one, other.assign(fault="hang"))
