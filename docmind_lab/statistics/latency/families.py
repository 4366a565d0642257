"""Censored maximum likelihood for durations: one lognormal, or two of them mixed.

fitted = best_family(observed_s, cut_s)     # the one with the smaller BIC
fitted.quantile(np.array([0.5, 0.95]))      # seconds

A duration that was cut enters with the probability to be longer. For one lognormal it is what
`scipy.stats.lognorm.fit(CensoredData, floc=0)` maximises. Gamma and Weibull won against these in 8 of 110 fits to the
public measurements of data/README.md, and by a BIC of more than 5 at one endpoint only, whose times are degenerate.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Floats = NDArray[np.float64]
# Of the logarithms of times and tokens, (log density, log survival) for parameters without bounds of their own.
_Logs = tuple[Floats, Floats]

# Past this many rows the fit is no surer and takes longer; the empirical quantiles take all of them.
_ROWS_FOR_FIT: Final = 20_000
# A standard deviation of the log below this is a spike on a few equal values, whose likelihood has no bound.
_NARROWEST: Final = 0.02
_SMALLEST_SHARE: Final = 0.02
_LOG_TWO_PI: Final = math.log(2 * math.pi)


def _normal_logs(log_t: Floats, mu: float, log_sigma: float) -> _Logs:
    z = (log_t - mu) * math.exp(-log_sigma)
    return -0.5 * (z * z + _LOG_TWO_PI) - log_sigma - log_t, special.log_ndtr(-z)


def _logs(log_t: Floats, theta: Floats) -> _Logs:
    """Return the logs of a lognormal (two parameters) or of two of them mixed (five)."""
    if len(theta) == 2:
        return _normal_logs(log_t, theta[0], theta[1])
    # log w and log(1 − w) of the logit, without cancellation
    log_first, log_second = -np.logaddexp(0.0, -theta[0]), -np.logaddexp(0.0, theta[0])
    first, second = _normal_logs(log_t, theta[1], theta[2]), _normal_logs(log_t, theta[3], theta[4])
    density, survival = (np.logaddexp(log_first + a, log_second + b) for a, b in zip(first, second, strict=True))
    return density, survival


_SPREAD_BOUNDS: Final = (math.log(_NARROWEST), math.log(10.0))
_SHARE_BOUNDS: Final = (float(special.logit(_SMALLEST_SHARE)), float(special.logit(1 - _SMALLEST_SHARE)))
_ANY: Final = (None, None)


@dataclass(frozen=True)
class FittedFamily:
    """A fitted family of distributions of durations.

    theta: its unbounded parameters, of log seconds; two for one lognormal, five for two. bic: smaller is
    better.
    """

    theta: tuple[float, ...]
    bic: float

    @property
    def family(self) -> str:
        """Its name in words."""
        return "lognormal" if len(self.theta) == 2 else "two lognormals"

    def share(self, at_s: Floats) -> Floats:
        """Return the share of durations that are over by each instant."""
        return -np.expm1(self._log_survival(at_s))

    def quantile(self, levels: Floats) -> Floats:
        """Return the seconds at levels strictly between 0 and 1."""
        target = np.log1p(-np.asarray(levels, dtype="float64"))
        low, high = np.full(target.shape, -40.0), np.full(target.shape, 40.0)
        # The whole range of e^±40 s halved so often is below the spacing of doubles.
        for _ in range(60):
            middle = (low + high) / 2
            late = self._log_survival(np.exp(middle)) > target
            low, high = np.where(late, middle, low), np.where(late, high, middle)
        return np.exp((low + high) / 2)

    def parameters(self) -> dict[str, float]:
        """Return the parameters under their textbook names; scales and medians in seconds."""
        theta = self.theta
        if len(theta) == 2:
            return {"median_s": math.exp(theta[0]), "sigma": math.exp(theta[1])}
        names = ("first_median_s", "first_sigma", "second_median_s", "second_sigma")
        return {"first_share": float(special.expit(theta[0]))} | {
            name: math.exp(value) for name, value in zip(names, theta[1:], strict=True)
        }

    def _log_survival(self, at_s: Floats) -> Floats:
        # At 0 s and far out logarithms and powers overflow to the right limits.
        with np.errstate(all="ignore"):
            return _logs(np.log(at_s), np.array(self.theta))[1]


def best_family(observed_s: Floats, cut_s: Floats) -> FittedFamily:
    """Fit both families and return the one with the smaller BIC.

    observed_s, cut_s: positive seconds; at least two different ones observed.
    """
    # Evenly from the shortest to the longest of each sort.
    every = math.ceil((len(observed_s) + len(cut_s)) / _ROWS_FOR_FIT)
    log_observed, log_cut = (np.log(np.sort(each)[every // 2 :: every]) for each in (observed_s, cut_s))
    of_one = [np.array(_mean_and_log_spread(log_observed, _NARROWEST))]
    of_two = [_split_at(log_observed, share) for share in (0.5, 0.85)]
    fits = (_fit(starts, log_observed, log_cut) for starts in (of_one, of_two))
    return min(fits, key=lambda fit: fit.bic)


def _fit(starts: list[Floats], log_observed: Floats, log_cut: Floats) -> FittedFamily:
    def loss(theta: Floats) -> float:
        with np.errstate(all="ignore"):
            value = _logs(log_observed, theta)[0].sum() + _logs(log_cut, theta)[1].sum()
        # A mean, so that the optimiser's tolerances mean the same for ten rows and ten thousand.
        return float(-value / len(log_observed)) if np.isfinite(value) else 1e10

    bounds = [_ANY, _SPREAD_BOUNDS] if len(starts[0]) == 2 else [_SHARE_BOUNDS, *([_ANY, _SPREAD_BOUNDS] * 2)]
    # For two to five parameters ten times faster than L-BFGS-B, whose linear algebra wants every core.
    method: dict[str, Any] = {"method": "SLSQP", "options": {"ftol": 1e-9, "maxiter": 300}}
    results = (optimize.minimize(loss, start, bounds=bounds, **method) for start in starts)
    best = min(results, key=lambda result: float(result.fun))
    likelihood = -float(best.fun) * len(log_observed)
    # The observed ones tell about the shape; to count the cut ones as well would punish a file for its timeouts.
    bic = len(best.x) * math.log(len(log_observed)) - 2 * likelihood
    return FittedFamily(tuple(float(value) for value in best.x), bic)


def _split_at(ordered: Floats, share: float) -> Floats:
    """Return starting values for two lognormals: one for the rows below a quantile, one for those above it."""
    place = min(max(1, round(share * len(ordered))), len(ordered) - 1)
    parts = (_mean_and_log_spread(part, 2 * _NARROWEST) for part in (ordered[:place], ordered[place:]))
    return np.array([special.logit(share), *itertools.chain(*parts)])


def _mean_and_log_spread(log_t: Floats, narrowest: float) -> tuple[float, float]:
    return float(log_t.mean()), math.log(max(float(log_t.std()), narrowest))
