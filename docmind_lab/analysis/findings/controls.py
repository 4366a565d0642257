"""Negative controls: whether a study detects an arm that enforces nothing, and no difference between equals.

enforcement(study.runs)         per arm: how often the deadline mattered, how often the caller was back by then
aa(first.runs, second.runs)     the same alternative twice, with other seeds: what would be called a difference
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.analysis.conditions import CONDITION, by_condition, with_arms
from docmind_lab.analysis.findings.endings import ended_by_budget
from docmind_lab.analysis.findings.measured_perf import CONTROL
from docmind_lab.analysis.statistics.differences import column_values, mean_difference
from docmind_lab.analysis.statistics.shares import share_difference
from docmind_lab.core.deadlines import HELD_WITHIN_S
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import ENDED_UNANSWERED, TIMEOUT_REASONS

AA_MEASURES: Final = (
    "answered_in_time",
    "caller_overrun_s",
    "work_overrun_s",
    "busy_after_deadline_s",
    "source_recall",
    "recall_at_deadline",
)


def control_failed(runs: pd.DataFrame) -> bool:
    """Whether every run without a deadline and without a fault ended in an error.

    Then nothing is known of what a deadline does to an answer: there was none to be had.

    Args:
        runs: Rows of `runs`.
    """
    control = runs[(runs["alternative"].astype("str") == CONTROL) & (runs["fault"].astype("str") == "none")]
    failed = (control["outcome"].astype("str") == "failed") & ~ended_by_budget(control)
    return len(control) > 0 and bool(failed.all())


def enforcement(runs: pd.DataFrame, *, slack_s: float = HELD_WITHIN_S, confidence: float = 0.95) -> pd.DataFrame:
    """Return which arms enforce their deadline, judged by measurements and not by their names.

    One row per condition and arm, the control apart: the columns of `conditions.CONDITION`, arm, alternative, runs,
    tested (runs that would have gone on past the deadline by more than `slack_s`: the control of the same seed did, or
    the arm itself), held (back by then), cut_short (late, but stopped by the budget and back before the control by more
    than `slack_s`), went_on (late, not cut short, and new requests reached a server after the deadline while the caller
    waited), held_low and held_high (Clopper and Pearson's exact interval of held / tested), verdict:

    - enforces: every tested run was held;
    - late: the deadline did something, but not always by then: D ends with the step under way, for one;
    - does not enforce: no tested run was held or cut short, and the work simply went on;
    - undecided: none was held or cut short, and in none did new work begin, so that an enforcer that waits for the step
      under way would look the same (a call that hangs across the deadline, or the deadline in the last step);
    - not tested: no run reached its deadline. More or shorter budgets are needed to say anything.

    A run that came to its own end is no evidence of enforcement, however soon after the deadline it did; neither is one
    that another budget ended. Source of the interval: Clopper and Pearson (1934), Biometrika 26:404, as
    `scipy.stats.binomtest`.

    Raises: ConfigurationError for a condition without the control: it alone tells what would have gone on.
    """
    rows = []
    for condition, group in by_condition(with_arms(runs)):
        levels = group["alternative"].astype("str")
        control = group[levels == CONTROL].drop_duplicates("seed").set_index("seed")
        if control.empty:
            raise ConfigurationError(
                f"no run of {CONTROL} at decision_timeout_s {condition['decision_timeout_s']:g}, fault "
                f"{condition['fault']}: without the control nothing tells which runs reached their deadline; measure it"
            )
        for arm, of_arm in group[levels != CONTROL].groupby("arm", observed=True):
            result = _enforcement_row(of_arm, control, slack_s, confidence)
            rows.append({**condition, "arm": str(arm), "alternative": str(of_arm["alternative"].iloc[0]), **result})
    columns = [*CONDITION, "arm", "alternative", "runs", *_FOUND]
    return pd.DataFrame(rows, columns=columns)


_FOUND: Final = ("tested", "held", "cut_short", "went_on", "held_low", "held_high", "verdict")


def _enforcement_row(of_arm: pd.DataFrame, control: pd.DataFrame, slack_s: float, confidence: float) -> dict[str, Any]:
    limit_s = of_arm["decision_timeout_s"] + slack_s
    # Unfinished by the horizon is later than any instant that can be told.
    returned_s = of_arm["returned_at_s"].fillna(np.inf)
    left_alone_s = of_arm["seed"].map(control["returned_at_s"].fillna(np.inf))
    by_budget = of_arm["stop_reason"].astype("str").isin(TIMEOUT_REASONS)
    answered = of_arm["outcome"].astype("str") == "answered"
    late = returned_s > limit_s
    # A run that stopped for another reason by then (an answer, an error, another budget) was not the deadline's to
    # stop.
    stopped = by_budget | (
        ~answered & ~ended_by_budget(of_arm) & ~of_arm["outcome"].astype("str").isin(ENDED_UNANSWERED)
    )
    tested = late | ((left_alone_s > limit_s) & stopped)
    held = tested & ~late
    cut_short = late & by_budget & (returned_s < left_alone_s - slack_s)
    went_on = late & ~cut_short & (of_arm["calls_after_deadline"] > 0)
    columns = {"tested": tested, "held": held, "cut_short": cut_short, "went_on": went_on}
    counts = {name: int(column.sum()) for name, column in columns.items()}
    low, high = _exact_bounds(counts["held"], counts["tested"], confidence)
    return {"runs": len(of_arm), **counts, "held_low": low, "held_high": high, "verdict": _verdict(**counts)}


def _verdict(tested: int, held: int, cut_short: int, went_on: int) -> str:
    if not tested:
        return "not tested"
    if held == tested:
        return "enforces"
    if held or cut_short:
        return "late"
    return "does not enforce" if went_on else "undecided"


def _exact_bounds(successes: int, runs: int, confidence: float) -> tuple[float, float]:
    if not runs:
        return 0.0, 1.0
    result = stats.binomtest(successes, runs).proportion_ci(confidence, "exact")
    return float(result.low), float(result.high)


def aa(
    first: pd.DataFrame, second: pd.DataFrame, *, level: float = 0.05, resamples: int = 9999, seed: int = 0
) -> pd.DataFrame:
    """Compare an arm with itself (an A/A test): how often equals would be called different.

    Chance alone flags a measure with a probability of `level` at most, so one flag of six is no wonder. What counts is
    how many of many A/As are flagged: at 5 %, up to 41 of 500 are within chance (more have a binomial probability below
    1 in 1,000). With common random numbers two runs of one alternative and seed are the same run, and a test that never
    finds anything passes. Hence other seeds, and unpaired tests.

    Args:
        first: Runs of one arm in one condition.
        second: Runs of the same arm and condition with other seeds.
        level: P values below it are flagged.
        resamples: Number of resamples of the permutation tests.
        seed: Seed of the permutation tests.

    Returns:
        One row per measure that is known in every run: measure, first, second (means, or shares), difference, low, high
        (95 %), p_value, test, flagged.

    Raises:
        ConfigurationError: There are several arms or conditions, or a seed is in both.
    """
    _require_aa(first, second)
    rows = []
    for measure in AA_MEASURES:
        unknown = first[measure].isna().any() or second[measure].isna().any()
        if unknown and measure != "caller_overrun_s":  # which counts an unfinished run with its horizon
            continue
        one, other = column_values(first, measure), column_values(second, measure)
        if measure == "answered_in_time":
            result = share_difference(one > 0, other > 0)
        else:
            result = mean_difference(one, other, seed=seed, resamples=resamples)
        means = {"measure": measure, "first": float(one.mean()), "second": float(other.mean())}
        rows.append({**means, **result.row(), "flagged": result.p_value < level})
    columns = ["measure", "first", "second", "difference", "low", "high", "p_value", "test", "flagged"]
    return pd.DataFrame(rows, columns=columns)


def _require_aa(first: pd.DataFrame, second: pd.DataFrame) -> None:
    both = with_arms(pd.concat([first, second], ignore_index=True))
    arms = sorted(set(both["arm"].astype("str")))
    if len(arms) != 1:
        raise ConfigurationError(f"an A/A is of one arm, not of {', '.join(arms) or 'none'}: keep the runs of one")
    several = [column for column in CONDITION if both[column].astype("str").nunique() > 1]
    if several:
        raise ConfigurationError(f"an A/A is of one condition: the runs have several values of {', '.join(several)}")
    shared = set(first["seed"]) & set(second["seed"])
    if shared:
        raise ConfigurationError(
            f"{len(shared)} seeds are in both: with common random numbers an arm equals itself by construction; "
            "measure the second with another seed"
        )
