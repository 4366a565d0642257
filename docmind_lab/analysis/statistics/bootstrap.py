"""Bootstrap intervals for means and medians of one sample, or of the difference of two independent ones.

The studentised bootstrap measures each resample in its own standard errors, and so sees the skewness of waiting times;
scipy has none, so it is here. Everything else is `scipy.stats.bootstrap`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from docmind_lab.analysis.statistics.incidence import Floats
from docmind_lab.analysis.statistics.interval import Interval

Samples = tuple[Floats, ...]

# Resamples without spread have no standard error. Up to this share of them they can be put beyond either end without
# any effect on a 95 % interval; more means that the sample has too few values that differ.
_WITHOUT_SPREAD = 0.01
_NUMBERS_AT_ONCE = 2_000_000


def studentised_interval(samples: Samples, confidence: float, seed: int, resamples: int) -> Interval:
    """The mean of one sample, or the mean of the first − that of the second, with a bootstrap-t interval.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 12.5; second-order correct for means
    (Hall 1992). Where too many resamples have no spread: `bca_interval`.
    """
    estimate, error = (float(value[0]) for value in _means_and_errors([s[np.newaxis] for s in samples]))
    scale = max(float(np.abs(sample).max()) for sample in samples)
    if error <= 1e-12 * scale:
        return _without_width(samples, estimate, confidence)
    rng = np.random.default_rng(seed)
    portion = max(1, _NUMBERS_AT_ONCE // sum(len(sample) for sample in samples))
    drawn = []
    for begun in range(0, resamples, portion):
        rows = min(portion, resamples - begun)
        drawn.append(_means_and_errors([s[rng.integers(0, len(s), (rows, len(s)))] for s in samples]))
    means, errors = (np.concatenate(part) for part in zip(*drawn, strict=True))
    spread = errors > 1e-9 * error
    if float(np.mean(~spread)) > _WITHOUT_SPREAD:
        return bca_interval(samples, np.mean, confidence, seed, resamples)
    away = means - estimate
    in_errors = np.where(spread, away / np.where(spread, errors, 1.0), np.copysign(np.inf, away))
    tail = (1.0 - confidence) / 2
    low_t, high_t = np.quantile(in_errors, [tail, 1.0 - tail], method="inverted_cdf")
    low, high = estimate - float(high_t) * error, estimate - float(low_t) * error
    return Interval(estimate, low, high, confidence, f"studentised bootstrap{_kind(samples)}", _runs(samples))


def bca_interval(
    samples: Samples, statistic: Callable[..., Any], confidence: float, seed: int, resamples: int
) -> Interval:
    """The statistic of one sample, or its difference between two, with a BCa interval of `scipy.stats.bootstrap`.

    statistic: np.mean or np.median. Where BCa is not defined, percentiles; `method` says which. The confidence is
    widened for few runs: a bootstrap takes the variance over n and the normal quantile, where n − 1 and Student's are
    due. Source: Efron (1987), JASA 82:171; Hesterberg (2015), The American Statistician 69:371, section 4.
    """

    def difference(*drawn: Floats, axis: int = -1) -> Any:
        values = [statistic(sample, axis=axis) for sample in drawn]
        return values[0] if len(values) == 1 else values[0] - values[1]

    estimate = float(difference(*samples))
    if all(np.ptp(sample) == 0.0 for sample in samples):
        return _without_width(samples, estimate, confidence)
    smallest = min(len(sample) for sample in samples)
    quantile = stats.t.ppf(0.5 + confidence / 2, smallest - 1) * math.sqrt(smallest / (smallest - 1))
    given: dict[str, Any] = {
        "statistic": difference,
        "vectorized": True,
        "axis": -1,
        "confidence_level": float(2 * stats.norm.cdf(quantile) - 1),
        "batch": max(1, _NUMBERS_AT_ONCE // sum(len(sample) for sample in samples)),
        "rng": np.random.default_rng(seed),
    }
    with warnings.catch_warnings():
        # Where the acceleration is 0 / 0 scipy warns and answers NaN, which is looked at below.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = stats.bootstrap(samples, n_resamples=resamples, method="BCa", **given)
        method, bounds = "BCa", found.confidence_interval
        if np.isnan([bounds.low, bounds.high]).any():
            again = stats.bootstrap(samples, n_resamples=0, bootstrap_result=found, method="percentile", **given)
            method, bounds = "percentile", again.confidence_interval
    # The median of an even number of runs can lie outside of what resamples of it reach; the interval holds it.
    low, high = min(float(bounds.low), estimate), max(float(bounds.high), estimate)
    return Interval(estimate, low, high, confidence, f"{method} bootstrap{_kind(samples)}", _runs(samples))


def _means_and_errors(samples: list[Floats]) -> tuple[Floats, Floats]:
    """For each row the (difference of) means and its standard error, as Welch's for two samples."""
    means = [sample.mean(axis=-1) for sample in samples]
    squares = [sample.var(axis=-1, ddof=1) / sample.shape[-1] for sample in samples]
    return (means[0] if len(means) == 1 else means[0] - means[1]), np.sqrt(sum(squares))


def _without_width(samples: Samples, estimate: float, confidence: float) -> Interval:
    all_equal = "all differences are equal" if len(samples) == 1 else "no arm varies"
    method = f"none: {all_equal}, so the interval has no width"
    return Interval(estimate, estimate, estimate, confidence, method, _runs(samples))


def _kind(samples: Samples) -> str:
    return ", paired" if len(samples) == 1 else ""


def _runs(samples: Samples) -> int:
    return sum(len(sample) for sample in samples)
