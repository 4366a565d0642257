"""Made-up durations whose truth is known; nothing here was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats

from docmind_lab.statistics.latency.durations import Sample

LEVELS = np.arange(0.05, 0.951, 0.05)
ROWS = 1000
CUT = 0.2


class Mixture:
    """Fast calls and slow ones, one distribution as scipy has them."""

    def __init__(self, share, fast, slow):
        self.share, self.fast, self.slow = share, fast, slow

    def cdf(self, at_s):
        return self.share * self.fast.cdf(at_s) + (1 - self.share) * self.slow.cdf(at_s)

    def ppf(self, levels):
        grid_s = np.linspace(0.0, 20.0, 200_001)
        return np.interp(levels, self.cdf(grid_s), grid_s)

    def rvs(self, size, random_state):
        drawn = [part.rvs(size, random_state=random_state) for part in (self.fast, self.slow)]
        return np.where(random_state.random(size) < self.share, *drawn)


# Spreads of a third: the standard error of a fitted p95 of 1,000 rows is then 2 %, of wider ones more (see the docs).
TRUTHS = {
    "lognormal": stats.lognorm(0.3, scale=1.2),
    "gamma": stats.gamma(9, scale=0.2),
    "mixture": Mixture(0.7, stats.lognorm(0.2, scale=1.0), stats.lognorm(0.2, scale=1.35)),
}


@dataclass(frozen=True)
class Timeouts:
    """Limits that cut so many calls. spread: of the logarithm of independent limits; 0 is one limit for all."""

    spread: float

    def drawn(self, truth, size, rng):
        """A limit for each call."""
        return self.median_s(truth) * np.exp(self.spread * rng.standard_normal(size))

    def median_s(self, truth):
        if not self.spread:
            return float(truth.ppf(1 - CUT))
        nodes, weights = np.polynomial.hermite_e.hermegauss(41)
        weights = weights / weights.sum()
        return optimize.brentq(
            lambda median_s: weights @ (1 - truth.cdf(median_s * np.exp(self.spread * nodes))) - CUT, 0.05, 100.0
        )


TIMEOUTS = {"independent": Timeouts(0.5), "fixed": Timeouts(0.0)}


def durations(truth, seed, timeouts=None, rows=ROWS):
    """A sample of a truth, a fifth of it cut."""
    rng = np.random.default_rng(seed)
    drawn_s = truth.rvs(rows, random_state=rng)
    limits_s = np.full(rows, np.inf) if timeouts is None else timeouts.drawn(truth, rows, rng)
    cut = limits_s < drawn_s
    return Sample(drawn_s[~cut], limits_s[cut])
