"""Quantiles of a duration, and the evidence that they rest on where they were fitted to measurements."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.text import count_of


@dataclass(frozen=True)
class QuantileTable(ShownAsCode):
    """Quantiles of a duration: `values_s[i]` seconds is the quantile at `levels[i]`.

    levels: strictly increasing, from 0 (smallest observation) to 1 (largest). values_s: finite, not negative,
    non-decreasing. Raises ConfigurationError if they are not.
    """

    levels: tuple[float, ...]
    values_s: tuple[float, ...]

    @classmethod
    def constant(cls, seconds: float) -> QuantileTable:
        """The table of a duration that is always the same."""
        return cls((0.0, 1.0), (seconds, seconds))

    def __post_init__(self) -> None:
        lengths = (len(self.levels), len(self.values_s))
        if lengths[0] < 2 or lengths[0] != lengths[1]:
            raise ConfigurationError(f"levels and values_s need one length, at least 2: got {lengths}")
        if (self.levels[0], self.levels[-1]) != (0, 1) or not all(a < b for a, b in pairwise(self.levels)):
            raise ConfigurationError(
                "levels must increase strictly from 0 (smallest observation) to 1 (largest): "
                f"got {self.levels[0]} … {self.levels[-1]}; sort them and drop repeats"
            )
        # Written so that a NaN fails it: every comparison with one is false.
        rising = all(a <= b for a, b in pairwise(self.values_s))
        if not (rising and self.values_s[0] >= 0 and self.values_s[-1] < math.inf):
            raise ConfigurationError("values_s must be finite seconds from 0 up that never decrease: sort them")

    def at(self, level: float) -> float:
        """Return the seconds at a level in [0, 1]: the inverse of the distribution function, linear between levels.

        Linear, because the table holds what was measured: no shape is imposed between two quantiles, and no
        tail is invented beyond the largest observation. Raises ConfigurationError outside [0, 1].
        """
        if not 0 <= level <= 1:
            raise ConfigurationError(f"level must lie in [0, 1]: got {level}")
        right = min(bisect_right(self.levels, level), len(self.levels) - 1)
        low_s, high_s = self.values_s[right - 1], self.values_s[right]
        share = (level - self.levels[right - 1]) / (self.levels[right] - self.levels[right - 1])
        # Rounding may carry the sum past the end of its segment, which would break monotonicity.
        return min(low_s + (high_s - low_s) * share, high_s)

    def __repr__(self) -> str:
        named = ((0.5, "median"), (0.9, "p90"), (0.99, "p99"), (1.0, "most"))
        return f"QuantileTable: {', '.join(f'{name} {self.at(level):.3g} s' for level, name in named)}"

    def scaled(self, factor: float) -> QuantileTable:
        """Return the table with every duration times `factor`. Raises ConfigurationError unless it is positive."""
        require_factor(factor)
        return QuantileTable(self.levels, tuple(value_s * factor for value_s in self.values_s))


def require_factor(factor: float, name: str = "factor") -> None:
    """Return if durations can be multiplied by a factor; else raise ConfigurationError with its name."""
    if not 0 < factor < math.inf:
        raise ConfigurationError(f"{name} must be positive and finite: got {factor}")


@dataclass(frozen=True)
class DurationFit:
    """The fit of one kind of duration, with the evidence for it.

    table: what the profile draws from. used: "fitted" or "empirical", how the table came to be. observed, cut: rows.
    known_to: the share of durations up to which the data tell, 1 where the longest row ended; known_to_s: its seconds.
    levels, empirical_s, low, high: observed quantiles (Kaplan–Meier) up to there, and the 95 % pointwise band of the
    share at each. fitted_s: the family's quantiles at the same levels. family, parameters: "" and empty for too few
    rows or rows without spread. distance: the difference of shares between family and data where it is largest for
    what chance allows there; distance_at_s: where; allowed: what chance allows, and exceeds in 1 of 20 samples.
    """

    table: QuantileTable
    used: str
    observed: int
    cut: int
    known_to: float
    known_to_s: float
    levels: tuple[float, ...]
    empirical_s: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    fitted_s: tuple[float, ...] = ()
    family: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    distance: float = math.nan
    distance_at_s: float = math.nan
    allowed: float = math.nan

    @property
    def fits(self) -> bool:
        """Whether the family is no farther from the data than chance explains; False without a family."""
        return bool(self.distance <= self.allowed)

    def __repr__(self) -> str:
        return f"DurationFit: {self.in_words()}"

    def in_words(self) -> str:
        """Describe the fit in one or two sentences: rows, where the table comes from, what was not observed."""
        text = f"{count_of(self.observed, 'duration')} observed, {self.cut} cut"
        if not self.family:
            text += "; observed quantiles, too few or too equal for a family"
        elif self.used == "fitted":
            text += f"; {self.family} by censored maximum likelihood"
        else:
            text += "; observed quantiles (Kaplan–Meier)"
        if self.family and not self.fits:
            text += (
                f" ({self.family} fits badly: {self.distance:.1%} of the calls off at {self.distance_at_s:.3g} s, "
                f"chance allows {self.allowed:.1%})"
            )
        if self.known_to < 1:
            text += f"; above the level {self.known_to:.4g} ({self.known_to_s:.3g} s) nothing was observed, and there "
            if self.family:
                last_s = self.table.at(1.0)
                text += f"the table is the tail of the {self.family} fit, up to {last_s:.3g} s: an extrapolation"
            else:
                text += "the table holds the longest time seen: the true durations are longer"
        return text + "."
