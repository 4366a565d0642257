"""How latencies grow with the output tokens, where no first token is recorded.

latency = factor × (first + tokens × each): a slow call is slow in both parts. The three unknowns (two times and the
spread of lognormal factors) are found by maximum likelihood; the factors themselves are then whatever the rows say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy import optimize, special

from docmind_lab.analysis.latency.families import Floats

# Twice the gain in log likelihood that chance exceeds in 1 of 20 samples, for one parameter at its bound of 0.
_SLOPE_GAIN: Final = 2.71
# How many tokens a cut call was to give is not known: it may be any of so many quantiles of the complete ones.
_TOKEN_COUNTS: Final = 40
# Each round moves the shares of those counts by a tenth of the one before, or less.
_ROUNDS: Final = 6


@dataclass(frozen=True, eq=False)
class Pace:
    """What a call of factor 1 takes.

    first_s: seconds to its first token; token_s: for each of its tokens. expected_s_of_cut: the latency that each cut
    call would have had, a geometric mean over the tokens that it may have been to give.
    """

    first_s: float
    token_s: float
    expected_s_of_cut: Floats

    def expected_s(self, tokens: Floats) -> Floats:
        """Latencies at factor 1."""
        return self.first_s + self.token_s * tokens


def fit_pace(whole_s: Floats, tokens: Floats, cut_s: Floats, hang_probability: float = 0.0) -> Pace | None:
    """The pace of complete calls (whole_s, tokens) and of cut ones; None where tokens do not make a call longer.

    All seconds are positive. The tokens that cut calls were to give are those of complete calls, weighted by how
    likely such a call was to be cut: expectation and maximisation in turns.
    """
    typical = max(1.0, float(np.median(tokens)))
    counts = np.quantile(tokens, (np.arange(_TOKEN_COUNTS) + 0.5) / _TOKEN_COUNTS)
    of_complete = np.full(_TOKEN_COUNTS, 1 / _TOKEN_COUNTS)
    rows = _Rows(np.log(whole_s), tokens / typical, np.log(cut_s), counts / typical, hang_probability)
    shares, theta = of_complete, rows.start()
    flat = rows.fitted(theta, shares, with_tokens=False)
    for _ in range(_ROUNDS if len(cut_s) else 1):
        found = rows.fitted(theta, shares)
        theta = found.x
        belief = rows.belief(theta, shares)
        shares = (of_complete * len(whole_s) + belief.sum(axis=0)) / (len(whole_s) + len(cut_s))
    if 2 * len(whole_s) * (float(flat.fun) - float(rows.fitted(theta, of_complete).fun)) < _SLOPE_GAIN:
        return None
    expected = belief @ np.log(math.exp(theta[0]) + math.exp(theta[1]) * rows.counts)
    return Pace(math.exp(theta[0]), math.exp(theta[1]) / typical, np.exp(expected))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Logarithms of latencies, and tokens in units of a typical count. theta: log first, log each, log spread."""

    log_whole: Floats
    tokens: Floats
    log_cut: Floats
    counts: Floats
    hang_probability: float

    def start(self) -> Floats:
        middle, spread = float(self.log_whole.mean()), float(self.log_whole.std())
        return np.array([middle - 0.7, middle - 0.7, math.log(max(spread, 0.02))])

    def fitted(self, start: Floats, shares: Floats, with_tokens: bool = True) -> Any:
        middle = float(self.log_whole.mean())
        bounds = [(middle - 14, middle + 7), (middle - 14, middle + 7), (math.log(1e-4), math.log(10.0))]
        options = {"ftol": 1e-9, "maxiter": 300}
        return optimize.minimize(
            self._loss, start, (shares, with_tokens), method="SLSQP", bounds=bounds, options=options
        )

    def belief(self, theta: Floats, shares: Floats) -> Floats:
        """For each cut call the probabilities of each count of tokens."""
        weights = shares * (self.hang_probability + (1 - self.hang_probability) * self._longer(theta))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _longer(self, theta: Floats, with_tokens: bool = True) -> Floats:
        """The probability that a call with each count of tokens takes longer than each cut one did."""
        each = math.exp(theta[1]) if with_tokens else 0.0
        away = (self.log_cut[:, np.newaxis] - np.log(math.exp(theta[0]) + each * self.counts)) / math.exp(theta[2])
        # Not 0, so that a belief is defined for calls that no count explains.
        return np.asarray(np.maximum(special.ndtr(-away), 1e-300))

    def _loss(self, theta: Floats, shares: Floats, with_tokens: bool) -> float:
        each = math.exp(theta[1]) if with_tokens else 0.0
        z = (self.log_whole - np.log(math.exp(theta[0]) + each * self.tokens)) / math.exp(theta[2])
        ends = 1 - self.hang_probability
        longer = self.hang_probability + ends * (self._longer(theta, with_tokens) @ shares)
        return float((0.5 * z * z + theta[2]).mean() - np.log(longer).sum() / len(z))
