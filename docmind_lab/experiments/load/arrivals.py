"""Open arrival processes: when queries arrive, none of which waits for the one before it.

    Poisson(0.5).instants(200, seed=7)          # seconds, the first one after its gap
    Constant(0.5)                               # one every 2 s

A closed source, which sends its next query when the last one is answered, goes easy on a system that is slow:
Schroeder, Wierman and Harchol-Balter, "Open versus closed: a cautionary tale", NSDI 2006.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.randomness import keyed_uniform


@dataclass(frozen=True)
class _Steady:
    """Arrivals at one rate, the average number of queries a second.

    Raises: ConfigurationError unless it is finite and above 0.
    """

    rate_per_s: float

    def __post_init__(self) -> None:
        rate = self.rate_per_s
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise ConfigurationError(f"rate_per_s must be a finite number above 0, not {rate!r}; try 0.5")


@dataclass(frozen=True)
class Poisson(_Steady):
    """Independent arrivals, with exponential gaps of mean 1 / rate.

    A seed's gaps at two rates are the same numbers, scaled, so that a curve over rates is not one of luck.
    """

    kind: ClassVar[str] = "poisson"

    def instants(self, count: int, seed: int) -> tuple[float, ...]:
        """Return the instants of the first arrivals, in order, seconds since the start; a seed has the same ones."""
        gaps = (-math.log1p(-keyed_uniform(seed, "arrival", number)) / self.rate_per_s for number in range(count))
        return tuple(accumulate(gaps))


@dataclass(frozen=True)
class Constant(_Steady):
    """One arrival every 1 / rate seconds, the first at 0."""

    kind: ClassVar[str] = "constant"

    def instants(self, count: int, seed: int) -> tuple[float, ...]:
        """Return the instants of the first arrivals, as `Poisson.instants` does; the seed changes nothing."""
        return tuple(number / self.rate_per_s for number in range(count))


Arrivals = Poisson | Constant
"""An open arrival process; the two are interchangeable with each other."""


def processes_of(arrivals: Iterable[float | Arrivals]) -> tuple[Arrivals, ...]:
    """Return the arrival processes; a rate stands for a Poisson process."""
    return tuple(Poisson(each) if isinstance(each, int | float) else each for each in arrivals)
