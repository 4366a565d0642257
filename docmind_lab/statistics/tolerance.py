"""Limits that few calls to come will be beyond, whatever the shape of their durations.

    sample = ToleranceSample.of(durations, is_whole, unit)
    sample.limits(0.01)                  # of each kind of duration; None with too few calls
    sample.share(durations > 8.0)        # of the calls to come that are as these, with its interval

- **Together.** Limits of several kinds give up calls in turn: the first the longest of its kind, the second that of the
  others, and so on. The share of all calls to come that is beyond any of them is known as well as that beyond one order
  statistic of so many calls: "statistically equivalent blocks" (Tukey, 1947, Annals of Mathematical Statistics 18:529;
  Fraser, 1953, 24:44). So three limits cost two calls more than one, and not three times as many.
- **Units.** Calls of a unit, such as a run, may be long together. Calls count as so many fewer as their design effect
  says, with the correction for few units of Korn and Graubard (1998), Survey Methodology 24:193. Units drawn anew (a
  bootstrap) would be too sure: the few calls beyond a limit do not hold those to come.
- **Cut calls.** A call that was cut is known to last longer. One that ended stands for those cut before it as well: for
  one kind of duration that is the estimate of Kaplan and Meier. What is left beyond the longest call is beyond limits.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from docmind_lab.statistics.interval import Floats, Interval

SURE: Final = 0.95
"""The share of repeats in which limits keep their promise."""
# Sought for more, since how much calls of a unit come together is itself estimated.
_SOUGHT: Final = 0.975
# How much calls come together is looked at where so many times the share is beyond limits: at the share alone a handful
# of calls tells.
_WIDER: Final = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class ToleranceSample:
    """Calls that came to their end, with what each stands for.

    Args:
        values: In the order of the calls, a row for each, a column for each kind of duration, seconds.
        weights: How many calls each stands for, itself included.
        unit: Number of the unit of each, from 0.
        units: How many units there are, those without a whole call included.
        left: How many calls last longer than any that came to its end.
    """

    values: Floats
    weights: Floats
    unit: NDArray[np.int64]
    units: int
    left: float

    @classmethod
    def of(cls, values: Floats, is_whole: NDArray[np.bool_], unit: NDArray[np.int64]) -> ToleranceSample:
        """Return the sample of these calls.

        values: as above; of a call that was cut, the first column is how long it lasted, and no other is looked at.
        is_whole: whether a call came to its end. unit: as above.
        """
        # Of one instant, ends come before cuts.
        order = np.lexsort((~is_whole, values[:, 0]))
        whole, at_risk = is_whole[order], len(order) - np.arange(len(order))
        uncut = np.cumprod(np.where(whole, 1.0, 1.0 - 1.0 / at_risk))
        weights = np.zeros(len(order))
        weights[order] = np.where(whole, 1.0 / np.concatenate(([1.0], uncut[:-1])), 0.0)
        left = len(order) - float(weights.sum())
        # Sums of weights come out within some 1e-12 of whole numbers.
        left = left if left > 1e-6 else 0.0
        return cls(values[is_whole], weights[is_whole], unit[is_whole], len(np.unique(unit)), left)

    @functools.cached_property
    def calls(self) -> float:
        """How many calls these stand for: all of them, the cut ones included."""
        return float(self.weights.sum()) + self.left

    def together(self, is_beyond: NDArray[np.bool_]) -> float:
        """Return how many calls beyond limits count as one, since calls of a unit come together; 1 or more.

        It is the design effect of the share of calls beyond limits, with one standard error added to it.
        is_beyond: whether each call is.
        """
        beyond, calls = (
            np.bincount(self.unit, weights=np.where(which, self.weights, 0.0)) for which in (is_beyond, True)
        )
        share = float(beyond.sum() / calls.sum())
        if not 0.0 < share < 1.0:
            return 1.0
        squares, alone = (beyond - share * calls) ** 2, (1.0 - share) * beyond
        effect = float(squares.sum() / alone.sum())
        error = math.sqrt(float(((squares - effect * alone) ** 2).sum())) / float(alone.sum())
        return max(1.0, effect + error)

    def enough(self, together: float) -> float:
        """Return how many independent calls say as much. together: as `together` returns it."""
        if self.units < 2:
            return 0.0
        few = float(stats.norm.ppf(0.975) / stats.t.ppf(0.975, self.units - 1)) ** 2
        return self.calls / together * few

    def share(self, is_beyond: NDArray[np.bool_]) -> Interval:
        """Return the share of calls beyond limits, with Clopper and Pearson's interval for as many independent ones."""
        share = min(1.0, (float(self.weights[is_beyond].sum()) + self.left) / self.calls)
        n = max(1.0, self.enough(self.together(is_beyond)))
        k, tail = share * n, (1.0 - SURE) / 2
        low = float(stats.beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
        high = float(stats.beta.isf(tail, k + 1, n - k)) if k < n else 1.0
        return Interval(share, min(low, share), max(high, share), SURE, "Clopper–Pearson, by unit", round(self.calls))

    def limits(self, share: float) -> tuple[Floats | None, float]:
        """Return a limit for each column, and how many independent calls say as much as these.

        Beyond any limit lies at most the share of as many fresh calls, in `SURE` of repeats. None for too few calls.
        """
        steps = self._given_up(max(_WIDER) * share * self.calls)
        together = 1.0
        for times in _WIDER:
            within = [step for step in steps if step.calls <= times * share * self.calls]
            together = max([together, *(self.together(self._is_beyond(step.limits)) for step in within[-1:])])
        enough = self.enough(together)
        if enough < calls_needed(len(self.values.T), share):
            return None, enough
        # Calls that come together count as one call given up; those of several units are several, however alike.
        most = most_given_up(enough, share)
        possible = [
            step.limits
            for step in steps
            if max(step.calls * enough / self.calls, step.units) <= most and np.isfinite(step.limits).all()
        ]
        return (possible[-1] if possible else None), enough

    def _is_beyond(self, limits: Floats) -> NDArray[np.bool_]:
        """Whether each call is at or beyond a limit: a call that set one is given up as well."""
        return np.asarray((self.values >= limits).any(axis=1))

    def _given_up(self, most: float) -> list[_Step]:
        """Return the limits, tighter from step to step, until more calls than these are given up."""
        columns = [iter(np.argsort(-column, kind="stable")) for column in self.values.T]
        limits, is_left = np.full(len(columns), np.inf), np.ones(len(self.values), dtype=bool)
        steps: list[_Step] = []
        given, units = self.left, set[int]()
        while given <= most:
            before = len(steps)
            for kind, places in enumerate(columns):
                place = next((place for place in places if is_left[place]), None)
                # A duration of 0 is none, and nothing is to be limited.
                if place is None or self.values[place, kind] <= 0:
                    continue
                limits[kind] = self.values[place, kind]
                # Calls that are equal are given up together.
                equal = is_left & (self.values[:, kind] == limits[kind])
                is_left &= ~equal
                given += float(self.weights[equal].sum())
                units.update(self.unit[equal])
                steps.append(_Step(limits.copy(), given, len(units)))
            if len(steps) == before:
                break
        return steps


class _Step(NamedTuple):
    """limits: of each kind; inf for none yet. calls, units: how many are at or beyond them."""

    limits: Floats
    calls: float
    units: int


def most_given_up(calls: float, share: float) -> float:
    """Return how many of so many independent calls may be given up, so that few enough of as many fresh ones are.

    calls: how many. share: at most this share of the fresh ones. The count of fresh calls beyond the r-th longest is
    beta-binomial; between whole numbers of calls given up it is taken as between whole ones.
    """
    n = int(calls)
    low, high = 0.0, min(float(n), math.floor(share * n + 1e-9) + 1.0)
    if n < 1 or _surely(n, 1e-9, share) < _SOUGHT:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if _surely(n, middle, share) >= _SOUGHT else (low, middle)
    return low


@functools.cache
def calls_needed(kinds: int, share: float) -> int:
    """Return the fewest independent calls for limits of so many kinds; 1 kind at 0.01 → 500, 3 → 900."""
    beyond = 0
    while _surely(n := max(kinds, math.ceil(beyond / share - 1e-9)), kinds, share) < _SOUGHT:
        beyond += 1
    return n


def _surely(calls: int, given_up: float, share: float) -> float:
    """Return how likely at most this share of as many fresh calls is beyond the longest that were given up."""
    return float(stats.betabinom.cdf(math.floor(share * calls + 1e-9), calls, given_up, calls - given_up + 1.0))
