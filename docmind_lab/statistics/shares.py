"""Intervals for shares of runs, and differences of shares between two arms.

share_interval(38, 40)               0.95 [0.83, 0.99]
is_share_below(1, 2, 0.95)           False: one failure in two runs does not show that fewer than 95 % succeed
runs_needed_for_share(0.95)          73: with fewer, even 73 of 73 would not show that the share is at least 0.95
paired_share_difference(a, b)        a, b: True or False for each seed, in one order
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.interval import Difference, Floats, Interval, check_confidence, difference_of


def share_interval(successes: int, runs: int, confidence: float = 0.95) -> Interval:
    """Return the share successes / runs with its Wilson score interval, without continuity correction.

    Source: Wilson (1927), JASA 22:209, as `scipy.stats.binomtest(…).proportion_ci("wilson")`; recommended for few runs
    by Brown, Cai and DasGupta (2001), Statistical Science 16:101.
    Raises: ConfigurationError for no runs, or for more successes than runs.
    """
    if runs < 1 or not 0 <= successes <= runs:
        raise ConfigurationError(
            f"successes is {successes} of {runs} runs: pass at least one run, and from 0 successes to all"
        )
    result = stats.binomtest(successes, runs).proportion_ci(check_confidence(confidence), "wilson")
    return Interval(successes / runs, float(result.low), float(result.high), confidence, "Wilson", runs)


def wilson_bounds(share: ArrayLike, runs: ArrayLike, quantile: float) -> tuple[Floats, Floats]:
    """Return the bounds of Wilson's interval for shares of which no whole number of runs need be a success.

    share: one or several. runs: as many independent runs as they rest on. quantile: of the normal distribution, or of
    Student's, at the two-sided confidence.
    """
    p, n = np.asarray(share, dtype="float64"), np.asarray(runs, dtype="float64")
    centre = p + quantile**2 / (2 * n)
    half = quantile * np.sqrt(p * (1 - p) / n + quantile**2 / (4 * n * n))
    low, high = ((centre + side * half) / (1 + quantile**2 / n) for side in (-1, 1))
    return np.maximum(0.0, low), np.minimum(1.0, high)


def is_share_below(successes: int, runs: int, limit: float, confidence: float = 0.95) -> bool:
    """Return whether so few successes show that the share is below a limit; wrong in one of forty cases at most.

    Both Wilson's upper bound and the exact binomial test of one side have to say so: of one to three runs the bound
    alone would be wrong in up to 14 % of cases.
    """
    exact = stats.binomtest(successes, runs, limit, "less").pvalue
    return share_interval(successes, runs, confidence).high < limit and exact <= (1 - confidence) / 2


def runs_needed_for_share(target: float, confidence: float = 0.95) -> int:
    """Return the fewest runs whose Wilson lower bound reaches the target if all of them succeed; 0.95 → 73.

    With all of n runs a success the bound is n / (n + z²), z the normal quantile of the two-sided confidence.
    Raises: ConfigurationError unless 0 < target < 1.
    """
    if not 0.0 < target < 1.0:
        raise ConfigurationError(f"target is {target:g}: choose a share between 0 and 1; no number of runs shows 1")
    z = float(stats.norm.ppf(0.5 + check_confidence(confidence) / 2))
    return max(1, math.ceil(target * z * z / (1.0 - target)))


def share_of_unseen(runs: int, confidence: float = 0.95) -> float:
    """Return the share of runs that an event may have which none of so many runs showed; 40 → 0.072 (one-sided)."""
    return 1.0 - math.pow(1.0 - check_confidence(confidence), 1.0 / runs)


def paired_share_difference(
    first: Sequence[bool] | NDArray[np.bool_], second: Sequence[bool] | NDArray[np.bool_], confidence: float = 0.95
) -> Difference:
    """Return the difference of two shares over the same seeds: Bonett–Price interval, exact McNemar test.

    first, second: one truth value for each seed, in the same order. Only discordant pairs tell; one more of either kind
    is added, so that an interval has a width also where there are none. p: `scipy.stats.binomtest` of the discordant
    pairs. Sources: Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37:479; Fagerland,
    Lydersen and Laake (2014), Statistics in Medicine 33:2850, who recommend it; McNemar (1947), Psychometrika 12:153.
    Raises: ConfigurationError for no pairs, or samples of two lengths.
    """
    a, b = _truths(first, "first"), _truths(second, "second")
    if len(a) != len(b):
        raise ConfigurationError(f"first has {len(a)} runs and second {len(b)}: pass the same seeds in the same order")
    only_first, only_second, pairs = int((a & ~b).sum()), int((b & ~a).sum()), len(a)
    p_first, p_second = (only_first + 1) / (pairs + 2), (only_second + 1) / (pairs + 2)
    centre = p_first - p_second
    z = float(stats.norm.ppf(0.5 + check_confidence(confidence) / 2))
    half = z * math.sqrt((p_first + p_second - centre**2) / (pairs + 2))
    interval = Interval(
        estimate=(only_first - only_second) / pairs,
        low=max(-1.0, centre - half),
        high=min(1.0, centre + half),
        confidence=confidence,
        method="Bonett–Price, paired",
        n=pairs,
    )
    discordant = only_first + only_second
    p_value = float(stats.binomtest(only_first, discordant).pvalue) if discordant else 1.0
    return Difference(interval, p_value, "exact McNemar")


def share_difference(
    first: Sequence[bool] | NDArray[np.bool_], second: Sequence[bool] | NDArray[np.bool_], confidence: float = 0.95
) -> Difference:
    """Return the difference of two shares over independent runs: Newcombe interval, Fisher's exact test.

    first, second: one truth value for each run. Sources: Newcombe (1998), Statistics in Medicine 17:873, method 10;
    `scipy.stats.fisher_exact`. Raises: ConfigurationError for an arm without runs.
    """
    a, b = _truths(first, "first"), _truths(second, "second")
    counts = [(int(arm.sum()), len(arm)) for arm in (a, b)]
    interval = difference_of(*(share_interval(successes, runs, confidence) for successes, runs in counts))
    p_value = float(stats.fisher_exact([[hits, runs - hits] for hits, runs in counts]).pvalue)
    return Difference(interval, p_value, "Fisher's exact")


def _truths(values: ArrayLike, name: str) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or not np.isin(array, (0, 1)).all():
        raise ConfigurationError(f"{name} must be True or False for each of at least one run")
    return array.astype(bool)
