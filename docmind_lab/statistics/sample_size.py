"""Quantiles that are given only if there are enough runs; otherwise the number of missing runs.

    gated_quantile(waits_s, 0.95)        an Interval, or a TooFewRuns that says "p95 needs 90 runs: 50 more"

There is no way around the gate: nothing else in this package returns a quantile of runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.statistics.interval import Interval, check_confidence

GATE_CONFIDENCE = 0.99
"""The confidence, as in MLPerf LoadGen, that a quantile was reached when no run lies beyond it."""


@dataclass(frozen=True)
class TooFewRuns(ShownAsCode):
    """The reason why there is no quantile: it needs `needed` runs, and there are `runs`."""

    quantile: float
    runs: int
    needed: int

    @property
    def missing(self) -> int:
        """The number of further runs that the quantile needs."""
        return self.needed - self.runs

    def text(self) -> str:
        """The text that a table prints instead of the number: "p95 needs 90 runs: 50 more"."""
        return f"{quantile_name(self.quantile)} needs {self.needed} runs: {self.missing} more"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"TooFewRuns: {self.text()}"


def quantile_name(quantile: float) -> str:
    """Return the name of a quantile: "p95", "p99.9"."""
    return f"p{100 * quantile:.10g}"


def runs_needed(quantile: float, confidence: float = GATE_CONFIDENCE) -> int:
    """Return the fewest runs for which a quantile may be given: p50 → 7, p90 → 44, p95 → 90, p99 → 459.

    With fewer, all runs together lie on one side of the true quantile with a probability above 1 − confidence, so that
    not even their extreme bounds it. Source: MLPerf Inference LoadGen (Reddi et al. 2020, ISCA, section on query
    counts), at zero exceedances: the least n with quantile ** n ≤ 1 − confidence; mirrored below the median.
    Raises: ConfigurationError unless 0 < quantile < 1.
    """
    if not 0.0 < quantile < 1.0:
        raise ConfigurationError(f"quantile is {quantile:g}: choose one between 0 and 1, as 0.95")
    # The share is rounded because 1 − 0.9 is not 0.1: a quantile and its mirror image ask for the same.
    side = round(max(quantile, 1.0 - quantile), 12)
    return math.ceil(math.log(1.0 - check_confidence(confidence)) / math.log(side))


def gated_quantile(values: ArrayLike, quantile: float, confidence: float = 0.95) -> Interval | TooFewRuns:
    """Return the quantile of the values with an interval, or how many runs are missing for it.

    values: one number for each run, in any unit; +inf for a run that had not come to its end (right-censored at its
    horizon), which counts as the longest there is and is never left out. An estimate or a bound of +inf reads "beyond
    the horizon". The estimate is the ⌈n × quantile⌉-th value; the interval has the ranks whose binomial probability is
    at least the confidence, whatever the distribution. Source: Conover, Practical Nonparametric Statistics (1999),
    section 3.2; the same ranks as `scipy.stats.quantile_test(…).confidence_interval`.
    Raises: ConfigurationError for a NaN among the values, and for a quantile that is none.
    """
    ordered = np.sort(np.asarray(values, dtype="float64").ravel())
    if np.isnan(ordered).any():
        raise ConfigurationError("values has a NaN: give an unfinished run +inf, so that it counts")
    runs, needed = len(ordered), runs_needed(quantile)
    if runs < needed:
        return TooFewRuns(quantile, runs, needed)
    tail = (1.0 - check_confidence(confidence)) / 2
    low_rank = int(stats.binom.ppf(tail, runs, quantile))
    high_rank = int(stats.binom.isf(tail, runs, quantile)) + 1
    return Interval(
        # Rounded up a hair below a whole rank, where 0.95 × 100 comes out as 95.00000000000001.
        estimate=float(ordered[math.ceil(round(runs * quantile, 9)) - 1]),
        low=float(ordered[low_rank - 1]) if low_rank >= 1 else -math.inf,
        high=float(ordered[high_rank - 1]) if high_rank <= runs else math.inf,
        confidence=confidence,
        method="order statistics",
        n=runs,
    )
