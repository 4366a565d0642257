"""Restricted means: the mean time without an answer up to a limit, over all runs.

    restricted_means(study.runs)                               up to the decision timeout, a row for each arm
    paired_restricted_mean_difference(a, b, 20.0)              a, b: the times of two arms, seed by seed

Time without an answer counts until the limit tau, whatever became of the run: one that failed, or left with a partial
answer, at 3 s counts with tau, not with 3 s. A mean over the answered runs alone would be shorter for the arm that
gives up sooner.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import (
    ANSWERED,
    CENSORED,
    AnswerTimes,
    answer_times,
    arms_of,
)
from docmind_lab.statistics.completion_curves import aalen_johansen
from docmind_lab.statistics.differences import paired_mean_difference
from docmind_lab.statistics.interval import Difference, Floats, Interval, check_confidence
from docmind_lab.statistics.shares import share_interval


def restricted_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean time without an answer until the decision timeout, as callers saw it, a row for each arm.

    Columns: arm (ordered categorical), tau_s (the decision timeout), mean_s, low_s, high_s (95 %), runs, method.
    Raises: ConfigurationError for no runs, or several conditions.
    """
    rows = []
    for arm, group in arms_of(runs):
        limit_s = float(group["decision_timeout_s"].iloc[0])
        mean = restricted_mean(answer_times(group, "no_answer"), limit_s)
        bounds = {"mean_s": mean.estimate, "low_s": mean.low, "high_s": mean.high}
        rows.append({"arm": arm, "tau_s": limit_s, **bounds, "runs": mean.n, "method": mean.method})
    frame = pd.DataFrame(rows)
    frame["arm"] = pd.Categorical(frame["arm"], categories=list(frame["arm"]), ordered=True)
    return frame


def restricted_mean(times: AnswerTimes, tau_s: float, confidence: float = 0.95) -> Interval:
    """Return the mean time without an answer within the first tau_s seconds: from 0 to tau_s, in seconds.

    Mean and variance are `Incidence.restricted_mean` (sources there); the variance is taken times n / (n − 1), with
    Student's quantile. The interval is symmetric in the logit of mean / tau_s: it stays within 0 and tau_s, and holds
    where few runs answer. Where the runs tell no variance (none answered, or all at one instant), the share of runs
    that may do otherwise is bounded by Wilson's interval of 0 in n, and those are given all there is to gain or lose.
    Raises: ConfigurationError unless tau_s > 0 and observed.
    """
    _check_observed(times, tau_s)
    n = len(times)
    mean_s, variance = aalen_johansen(times).restricted_mean(tau_s)
    share, error_s = mean_s / tau_s, math.sqrt(variance * n / max(1, n - 1))
    if n < 2 or error_s <= 1e-9 * tau_s or not 0.0 < share < 1.0:
        unseen = share_interval(0, n, confidence).high
        low, high = mean_s * (1.0 - unseen), mean_s + (tau_s - mean_s) * unseen
        return Interval(mean_s, low, high, confidence, "Wilson bound, no variance seen", n)
    quantile = float(stats.t.ppf(0.5 + check_confidence(confidence) / 2, n - 1))
    centre, half = math.log(share / (1.0 - share)), quantile * error_s / tau_s / (share * (1.0 - share))
    low, high = (tau_s / (1.0 + math.exp(min(700.0, -end))) for end in (centre - half, centre + half))
    return Interval(mean_s, low, high, confidence, "logit, restricted mean", n)


def paired_restricted_mean_difference(
    first: AnswerTimes,
    second: AnswerTimes,
    tau_s: float,
    confidence: float = 0.95,
    *,
    seed: int = 0,
    resamples: int = 9999,
) -> Difference:
    """Return first − second of the restricted means (s) of two arms over the same seeds, in one order.

    The bootstrap resamples seeds, whose pairs stay together: the latencies that both arms met cancel.
    Raises: ConfigurationError as `restricted_mean` and `differences.paired_mean_difference`.
    """
    pseudo = (pseudo_values(first, tau_s), pseudo_values(second, tau_s))
    return paired_mean_difference(*pseudo, confidence, seed=seed, resamples=resamples)


def pseudo_values(times: AnswerTimes, tau_s: float) -> Floats:
    """Return each run's share of the restricted mean, in seconds: n × mean − (n − 1) × mean without the run.

    If nothing is censored before tau_s, it is the run's time, and tau_s without an answer by then. Source: Andersen,
    Hansen and Klein (2004), Lifetime Data Analysis 10:335; for clustered and paired times Logan, Zhang and Klein
    (2011), Biometrics 67:1. Raises: ConfigurationError as `restricted_mean`.
    """
    _check_observed(times, tau_s)
    n = len(times)
    if n == 1 or not (times.at_s[times.what == CENSORED] < tau_s).any():
        return np.where(times.what == ANSWERED, np.minimum(times.at_s, tau_s), tau_s)
    whole_s, _ = aalen_johansen(times).restricted_mean(tau_s)
    without_s = np.empty(n)
    for place in range(n):
        others = AnswerTimes(np.delete(times.at_s, place), np.delete(times.what, place))
        without_s[place], _ = aalen_johansen(others).restricted_mean(tau_s)
    return n * whole_s - (n - 1) * without_s


def _check_observed(times: AnswerTimes, tau_s: float) -> None:
    if not tau_s > 0.0 or math.isinf(tau_s):
        raise ConfigurationError(f"tau_s is {tau_s:g}: choose a limit above 0 s, as the decision timeout")
    if tau_s > times.known_until_s:
        raise ConfigurationError(
            f"tau_s is {tau_s:g}, and the last runs were cut at {times.known_until_s:g} s: choose a tau_s up to "
            'there, or timed_out_as="no_answer"'
        )
