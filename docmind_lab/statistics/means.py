"""Intervals of means: by the bootstrap, for few distinct values, and for values between known bounds.

    studentised_interval(first, second, 0.95, seed=0, resamples=9999)        two arms, enough values that differ
    adjusted_paired_interval(differences, spread, 0.95)                      most values are equal
    bounded_mean_interval([0.44, 0.43, 0.01, 0.42], least=0.0, most=0.53)    few values, perhaps with two modes

The studentised bootstrap measures each resample in its own standard errors, so it sees the skewness of waiting times.
scipy has none; everything else of the bootstrap is `scipy.stats.bootstrap`.

A bootstrap cannot see what its sample does not hold. If 5 % of 20 pairs differ, its interval has no width a third of
the time. The adjusted intervals add made-up observations as far off as the measure ranges, as the intervals of Agresti
and Caffo and of Bonett and Price do for shares.

The interval of a Student assumes that means are nearly normal. Replicates that either collapse or do not have two
modes, and then it covers 50 to 95 % of the time with 8 to 20 replicates. The bounded interval takes from the bounds
what the sample cannot show.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.interval import Floats, Interval, check_confidence

# Resamples without spread have no standard error. Up to this share of them they can be put beyond either end without
# any effect on a 95 % interval; more means that the sample has too few values that differ.
_WITHOUT_SPREAD = 0.01
_NUMBERS_AT_ONCE = 2_000_000
_ROUNDING: Final = 1e-9


def studentised_interval(first: Floats, second: Floats, confidence: float, seed: int, resamples: int) -> Interval:
    """Return a bootstrap-t interval of the mean of the first − that of the second sample, which both vary.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 12.5; second-order correct for means
    (Hall 1992). Of skewed values, such as overruns, 91 to 92 % of these intervals hold the truth with 73 runs of each
    (tests/statistics/test_coverage.py). Where too many resamples have no spread: `bca_interval`.
    """
    samples = first, second
    estimate, error = (float(value[0]) for value in _means_and_errors([s[np.newaxis] for s in samples]))
    rng = np.random.default_rng(seed)
    runs = len(first) + len(second)
    portion = max(1, _NUMBERS_AT_ONCE // runs)
    drawn = []
    for begun in range(0, resamples, portion):
        rows = min(portion, resamples - begun)
        drawn.append(_means_and_errors([s[rng.integers(0, len(s), (rows, len(s)))] for s in samples]))
    means, errors = (np.concatenate(part) for part in zip(*drawn, strict=True))
    spread = errors > 1e-9 * error
    if float(np.mean(~spread)) > _WITHOUT_SPREAD:
        return bca_interval(first, second, confidence, seed, resamples)
    away = means - estimate
    in_errors = np.where(spread, away / np.where(spread, errors, 1.0), np.copysign(np.inf, away))
    tail = (1.0 - confidence) / 2
    low_t, high_t = np.quantile(in_errors, [tail, 1.0 - tail], method="inverted_cdf")
    low, high = estimate - float(high_t) * error, estimate - float(low_t) * error
    return Interval(estimate, low, high, confidence, "studentised bootstrap", runs)


def bca_interval(first: Floats, second: Floats, confidence: float, seed: int, resamples: int) -> Interval:
    """Return a BCa interval of the difference of the means of two samples, by `scipy.stats.bootstrap`.

    Where BCa is not defined, percentiles; `method` says which. The confidence is widened for few runs: a bootstrap
    takes the variance over n and the normal quantile, where n − 1 and Student's are due. Source: Efron (1987), JASA
    82:171; Hesterberg (2015), The American Statistician 69:371, section 4.
    """

    def difference(one: Floats, other: Floats, axis: int = -1) -> Any:
        return one.mean(axis=axis) - other.mean(axis=axis)

    samples, runs = (first, second), len(first) + len(second)
    estimate, smallest = float(difference(*samples)), min(len(first), len(second))
    quantile = stats.t.ppf(0.5 + confidence / 2, smallest - 1) * math.sqrt(smallest / (smallest - 1))
    located: dict[str, Any] = {
        "statistic": difference,
        "vectorized": True,
        "axis": -1,
        "confidence_level": float(2 * stats.norm.cdf(quantile) - 1),
        "batch": max(1, _NUMBERS_AT_ONCE // runs),
        "rng": np.random.default_rng(seed),
    }
    with warnings.catch_warnings():
        # Where the acceleration is 0 / 0 scipy warns and answers NaN, which is looked at below.
        warnings.simplefilter("ignore", RuntimeWarning)
        result = stats.bootstrap(samples, n_resamples=resamples, method="BCa", **located)
        method, bounds = "BCa", result.confidence_interval
        if np.isnan([bounds.low, bounds.high]).any():
            again = stats.bootstrap(samples, n_resamples=0, bootstrap_result=result, method="percentile", **located)
            method, bounds = "percentile", again.confidence_interval
    low, high = min(float(bounds.low), estimate), max(float(bounds.high), estimate)
    return Interval(estimate, low, high, confidence, f"{method} bootstrap", runs)


def _means_and_errors(samples: list[Floats]) -> tuple[Floats, Floats]:
    """Return for each row the difference of means and its standard error, Welch's."""
    first, second = (sample.mean(axis=-1) for sample in samples)
    squares = [sample.var(axis=-1, ddof=1) / sample.shape[-1] for sample in samples]
    return first - second, np.sqrt(sum(squares))


FEWEST_THAT_DIFFER: Final = 10
"""A mean gets an adjusted interval if fewer values than this differ from the most frequent one."""


def few_differ(values: Floats) -> bool:
    """Whether too few values differ from the most frequent one for a bootstrap to be trusted."""
    _, count = _most_frequent(values)
    return count > 1 and len(values) - count < FEWEST_THAT_DIFFER


def adjusted_paired_interval(differences: Floats, spread: float, confidence: float) -> Interval:
    """Return an interval of the mean of paired differences, few of which differ from the others.

    Two observations are added, one `spread` above the most frequent difference and one below it; then the interval is
    Student's. For differences of −1, 0 and 1 this is Bonett and Price's interval with Student's quantile. It covers at
    least 96 % where 2 to 20 % of 12 to 80 pairs differ, whatever their distribution (tests/statistics/test_means.py).

    spread: the largest difference that the measure allows, or the range of both arms' values. 0 if no run of either arm
    differs from any other: then nothing tells how large a difference could be, and the bounds are infinite.
    Source: Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37:479.
    """
    n, estimate = len(differences), float(differences.mean())
    if spread == 0.0:
        return Interval(estimate, -math.inf, math.inf, confidence, "none: no value differs from any other", n)
    centre, _ = _most_frequent(differences)
    return _student(
        np.append(differences, (centre - spread, centre + spread)), estimate, n, confidence, "adjusted Student, paired"
    )


def adjusted_interval(first: Floats, second: Floats, confidence: float) -> Interval:
    """Return an interval of the difference of two means, where few values of an arm differ from the others.

    Each arm is given two more observations: the least and the largest value of both arms. Then the interval is Welch's.

    Source: Agresti and Caffo (2000), The American Statistician 54:280, for shares.
    """
    both = np.concatenate((first, second))
    ends, n, estimate = (both.min(), both.max()), len(both), float(first.mean() - second.mean())
    if ends[0] == ends[1]:
        return Interval(estimate, -math.inf, math.inf, confidence, "none: no value differs from any other", n)
    arms = [np.append(arm, ends) for arm in (first, second)]
    squares = [float(arm.var(ddof=1)) / len(arm) for arm in arms]
    freedom = sum(squares) ** 2 / sum(square**2 / (len(arm) - 1) for square, arm in zip(squares, arms, strict=True))
    centre = float(arms[0].mean() - arms[1].mean())
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * math.sqrt(sum(squares))
    return Interval(
        estimate, min(centre - half, estimate), max(centre + half, estimate), confidence, "adjusted Welch", n
    )


def _most_frequent(values: Floats) -> tuple[float, int]:
    """Return the most frequent value and its count; values that differ by rounding alone are one."""
    scale = float(np.abs(values).max()) or 1.0
    _, places, counts = np.unique(np.round(values / scale, 9), return_index=True, return_counts=True)
    return float(values[places[counts.argmax()]]), int(counts.max())


def skewed_paired_interval(differences: Floats, spread: float, confidence: float) -> Interval:
    """Return an interval of the mean of paired differences, which may be skewed; in closed form.

    Student's statistic is corrected for the skewness of the differences by Hall's cubic transformation. Where few
    differ, it is the wider of this interval and `adjusted_paired_interval` on either side. It covers at least 93 % at
    12 to 40 pairs with a skewness of 2 to 3, zeros among them, where Student's covers 82 to 93 %
    (tests/statistics/test_means.py).

    spread: as for `adjusted_paired_interval`. Source: Hall (1992), "On the removal of skewness by transformation", JRSS
    B 54:221.
    """
    n, estimate = len(differences), float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(n)
    few = adjusted_paired_interval(differences, spread, confidence) if few_differ(differences) else None
    if few is not None and (math.isinf(few.low) or error <= _ROUNDING * float(np.abs(differences).max())):
        return few
    # The skewness of a sample is held down by its size: without its correction for bias the long side is too short.
    unbiased = math.sqrt(n * (n - 1)) / (n - 2) if n > 2 else 0.0
    skewness = unbiased * float(np.mean((differences - estimate) ** 3)) / float(differences.std()) ** 3 / math.sqrt(n)
    quantile = float(stats.t.ppf(0.5 + confidence / 2, n - 1))
    low, high = (estimate - error * _untransformed(side * quantile, skewness, n) for side in (1.0, -1.0))
    low, high = min(low, estimate), max(high, estimate)
    if few is None:
        return Interval(estimate, low, high, confidence, "Hall's skewness-adjusted t, paired", n)
    return Interval(estimate, min(low, few.low), max(high, few.high), confidence, f"{few.method}, for skewness", n)


def _untransformed(value: float, skewness: float, n: int) -> float:
    """Return the t whose transformation by Hall has this value; skewness: over √n."""
    if abs(skewness) < _ROUNDING:
        return value
    return 3.0 / skewness * (float(np.cbrt(1.0 + skewness * (value - skewness / 6.0))) - 1.0)


def _student(values: Floats, estimate: float, n: int, confidence: float, method: str) -> Interval:
    centre = float(values.mean())
    half = (
        float(stats.t.ppf(0.5 + confidence / 2, len(values) - 1)) * float(values.std(ddof=1)) / math.sqrt(len(values))
    )
    low, high = min(centre - half, estimate), max(centre + half, estimate)
    return Interval(estimate, low, high, confidence, method, n)


_DRAWS = 10_000
_METHOD = "Gaffke, bounded mean"


def bounded_mean_interval(
    values: Sequence[float] | Floats, *, least: float, most: float, confidence: float = 0.95
) -> Interval:
    """Return the mean of the values with Gaffke's interval.

    Sorted uniform numbers give each observation a random share of the probability; the share beyond the extreme
    observation lies at the bound. For values that are all `least` or `most` it is Clopper and Pearson's exact interval.
    It is conservative: for mixtures of two modes it covers 97 to 100 % of the time (tests/statistics/test_means.py).
    It never has zero width. The uniform numbers have a fixed seed, so the same values give the same interval.

    values: one for each independent replicate. least, most: bounds of the measure. Raises: ConfigurationError (for no
    values, or values outside the bounds). Source: Gaffke (2005), Mathematical Methods of Statistics 14:451;
    Learned-Miller and Thomas (2019), "A new confidence interval for the mean of a bounded random variable",
    arXiv:1905.06208.
    """
    sample = np.sort(np.asarray(values, dtype="float64"))
    # Written so that a NaN fails it: every comparison with one is false.
    if not (len(sample) and -math.inf < least <= sample[0] and sample[-1] <= most < math.inf and least < most):
        raise ConfigurationError(f"values must be one or more numbers between least ({least:g}) and most ({most:g})")
    tail = (1.0 - check_confidence(confidence)) / 2
    uniform = _sorted_uniform(len(sample))
    highest = most - uniform @ np.diff(sample, append=most)
    lowest = least + uniform @ np.diff(-sample[::-1], append=-least)
    return Interval(
        estimate=float(sample.mean()),
        low=float(np.quantile(lowest, tail)),
        high=float(np.quantile(highest, 1.0 - tail)),
        confidence=confidence,
        method=_METHOD,
        n=len(sample),
    )


@functools.lru_cache(maxsize=32)
def _sorted_uniform(count: int) -> Floats:
    drawn: Floats = np.sort(np.random.default_rng(0).random((_DRAWS, count)), axis=1)
    return drawn
