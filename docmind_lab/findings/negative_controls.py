"""Negative controls: whether a study detects an arm that enforces nothing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import ENDED_UNANSWERED, TIMEOUT_REASONS
from docmind_lab.findings.endings import ended_by_budget
from docmind_lab.tables.conditions import CONDITION, CONTROL, by_condition, with_arms


def control_failed(runs: pd.DataFrame) -> bool:
    """Whether every run without a deadline and without a fault ended in an error.

    Then nothing is known of what a deadline does to an answer: there was none to be had.

    runs: rows of `runs`.
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
