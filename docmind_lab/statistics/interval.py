"""An estimate with its interval, and a difference with its interval, p value and test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.shown import ShownAsCode

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval(ShownAsCode):
    """An estimate with its confidence interval, in the unit of the estimate.

    estimate, low, high: low ≤ estimate ≤ high; ±inf where a bound is not known, or lies beyond what was observed.
    confidence: 0.95 for a 95 % interval. method: the name of the interval, as a figure or a table prints it.
    n: how many runs are behind it; pairs of runs for a paired difference, the runs of both arms for an unpaired one.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str
    n: int

    def text(self, digits: int = 2, unit: str = "") -> str:
        """Format the interval for people: "0.93 [0.81, 0.98]", or "6.2 s [5.1, ∞]" with digits=1 and unit="s"."""
        text = f"{_number(self.estimate, digits)}{f' {unit}' if unit else ''}"
        return f"{text} [{_number(self.low, digits)}, {_number(self.high, digits)}]"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Interval: {self._describe()}"

    def _describe(self) -> str:
        return f"{self.text(3)}, {100 * self.confidence:g} % {self.method}, n = {self.n}"


@dataclass(frozen=True)
class Difference(ShownAsCode):
    """first − second, with an interval and the two-sided p value of the named test.

    interval and p_value come by two ways and may disagree at the margin: the interval says how large, the test whether
    anything. p_value is that of one comparison; see `corrections` for many.
    """

    interval: Interval
    p_value: float
    test: str

    def row(self) -> dict[str, Any]:
        """Return the columns of a frame: difference, low, high, method, p_value, test."""
        interval = self.interval
        bounds = {"difference": interval.estimate, "low": interval.low, "high": interval.high}
        return {**bounds, "method": interval.method, "p_value": self.p_value, "test": self.test}

    def __repr__(self) -> str:
        return f"Difference: {self.interval._describe()}; p = {self.p_value:.2g}, {self.test}"


def difference_of(first: Interval, second: Interval) -> Interval:
    """Return the interval of first − second of independent estimates from their intervals ("square and add").

    Each side of the difference is as far off as the two sides that lead there, taken together by Pythagoras; so the
    intervals' asymmetry and bounds carry over. Source: Newcombe (1998), Statistics in Medicine 17:873, method 10, for
    shares; Donner and Zou (2012), Statistical Methods in Medical Research 21:347, for any two intervals (MOVER).
    Raises: ConfigurationError for two confidences.
    """
    if first.confidence != second.confidence:
        raise ConfigurationError(
            f"confidence differs ({first.confidence:g} and {second.confidence:g}): make both intervals with one"
        )
    estimate = first.estimate - second.estimate
    return Interval(
        estimate=estimate,
        low=estimate - math.hypot(first.estimate - first.low, second.high - second.estimate),
        high=estimate + math.hypot(first.high - first.estimate, second.estimate - second.low),
        confidence=first.confidence,
        method=f"square and add of: {first.method}",
        n=first.n + second.n,
    )


def check_confidence(confidence: float) -> float:
    """Return the confidence. Raises: ConfigurationError unless it lies between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ConfigurationError(f"confidence is {confidence:g}: choose one between 0 and 1, as 0.95")
    return confidence


def _number(value: float, digits: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}f}"
