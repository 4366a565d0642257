"""Censored maximum likelihood for four families of durations: lognormal, gamma, Weibull, two lognormals mixed.

fitted = best_family(observed_s, cut_s)     # the one with the smallest BIC
fitted.quantile(np.array([0.5, 0.95]))      # seconds

A duration that was cut enters with the probability to be longer. For no hangs it is what
`scipy.stats.<family>.fit(CensoredData, floc=0)` maximises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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


def _lognormal(log_t: Floats, theta: Floats) -> _Logs:
    return _normal_logs(log_t, theta[0], theta[1])


def _gamma(log_t: Floats, theta: Floats) -> _Logs:
    shape, in_scales = math.exp(theta[0]), np.exp(log_t - theta[1])
    density = shape * (log_t - theta[1]) - in_scales - special.gammaln(shape) - log_t
    return density, np.log(special.gammaincc(shape, in_scales))


def _weibull(log_t: Floats, theta: Floats) -> _Logs:
    shape = math.exp(theta[0])
    power = np.exp(shape * (log_t - theta[1]))
    return theta[0] + shape * (log_t - theta[1]) - power - log_t, -power


def _mixture(log_t: Floats, theta: Floats) -> _Logs:
    # log w and log(1 − w) of the logit, without cancellation
    log_first, log_second = -np.logaddexp(0.0, -theta[0]), -np.logaddexp(0.0, theta[0])
    first, second = _normal_logs(log_t, theta[1], theta[2]), _normal_logs(log_t, theta[3], theta[4])
    density, survival = (np.logaddexp(log_first + a, log_second + b) for a, b in zip(first, second, strict=True))
    return density, survival


_FAMILIES: Final[Mapping[str, Callable[[Floats, Floats], _Logs]]] = {
    "lognormal": _lognormal,
    "gamma": _gamma,
    "weibull": _weibull,
    "two lognormals": _mixture,
}
_SHAPE_BOUNDS: Final = (math.log(0.05), math.log(2500.0))
_SPREAD_BOUNDS: Final = (math.log(_NARROWEST), math.log(10.0))
_SHARE_BOUNDS: Final = (float(special.logit(_SMALLEST_SHARE)), float(special.logit(1 - _SMALLEST_SHARE)))
_ANY: Final = (None, None)


@dataclass(frozen=True)
class FittedFamily:
    """A fitted family of distributions of durations.

    theta: its unbounded parameters, of log seconds. log_likelihood: of the rows of the fit. bic: smaller is better.
    """

    family: str
    theta: tuple[float, ...]
    log_likelihood: float
    bic: float

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
        if self.family in ("gamma", "weibull"):
            return {"shape": math.exp(theta[0]), "scale_s": math.exp(theta[1])}
        if self.family == "lognormal":
            return {"median_s": math.exp(theta[0]), "sigma": math.exp(theta[1])}
        names = ("first_median_s", "first_sigma", "second_median_s", "second_sigma")
        return {"first_share": float(special.expit(theta[0]))} | {
            name: math.exp(value) for name, value in zip(names, theta[1:], strict=True)
        }

    def _log_survival(self, at_s: Floats) -> Floats:
        # At 0 s and far out logarithms and powers overflow to the right limits.
        with np.errstate(all="ignore"):
            return _FAMILIES[self.family](np.log(at_s), np.array(self.theta))[1]


def best_family(observed_s: Floats, cut_s: Floats, hang_probability: float = 0.0) -> FittedFamily:
    """Fit all families and return the one with the smallest BIC.

    observed_s, cut_s: positive seconds; at least two different ones observed. hang_probability: share of durations
    that never end; the family is of the others.
    """
    observed_s, cut_s = _thin_out(observed_s, cut_s)
    fits = (_fit(name, np.log(observed_s), np.log(cut_s), hang_probability) for name in _FAMILIES)
    return min(fits, key=lambda fit: fit.bic)


def _fit(name: str, log_observed: Floats, log_cut: Floats, hang_probability: float) -> FittedFamily:
    logs = _FAMILIES[name]
    log_hang, log_ends = (math.log(share) if share else -math.inf for share in (hang_probability, 1 - hang_probability))

    def loss(theta: Floats) -> float:
        with np.errstate(all="ignore"):
            value = logs(log_observed, theta)[0].sum() + log_ends * len(log_observed)
            value += np.logaddexp(log_hang, log_ends + logs(log_cut, theta)[1]).sum()
        # A mean, so that the optimiser's tolerances mean the same for ten rows and ten thousand.
        return float(-value / len(log_observed)) if np.isfinite(value) else 1e10

    best = min(
        (_minimise(loss, start, bounds) for start, bounds in _starts(name, log_observed)),
        key=lambda result: float(result.fun),
    )
    likelihood = -float(best.fun) * len(log_observed)
    # The observed ones tell about the shape; to count the cut ones as well would punish a file for its timeouts.
    bic = len(best.x) * math.log(len(log_observed)) - 2 * likelihood
    return FittedFamily(name, tuple(float(value) for value in best.x), likelihood, bic)


def _minimise(loss: Callable[[Floats], float], start: Floats, bounds: list[Any]) -> Any:
    # For two to five parameters ten times faster than L-BFGS-B, whose linear algebra wants every core.
    return optimize.minimize(loss, start, method="SLSQP", bounds=bounds, options={"ftol": 1e-9, "maxiter": 300})


def _starts(name: str, log_t: Floats) -> list[tuple[Floats, list[Any]]]:
    mean, spread = float(log_t.mean()), max(float(log_t.std()), _NARROWEST)
    if name == "lognormal":
        return [(np.array([mean, math.log(spread)]), [_ANY, _SPREAD_BOUNDS])]
    if name == "gamma":
        return [(np.array([-2 * math.log(spread), mean + 2 * math.log(spread)]), [_SHAPE_BOUNDS, _ANY])]
    if name == "weibull":
        return [(np.array([math.log(1.28 / spread), mean + 0.45 * spread]), [_SHAPE_BOUNDS, _ANY])]
    bounds = [_SHARE_BOUNDS, _ANY, _SPREAD_BOUNDS, _ANY, _SPREAD_BOUNDS]
    return [(_split_at(np.sort(log_t), share), bounds) for share in (0.5, 0.85)]


def _split_at(ordered: Floats, share: float) -> Floats:
    """Return starting values for two lognormals: one for the rows below a quantile, one for those above it."""
    place = min(max(1, round(share * len(ordered))), len(ordered) - 1)
    parts = [value for part in (ordered[:place], ordered[place:]) for value in _mean_and_log_spread(part)]
    return np.array([special.logit(share), *parts])


def _mean_and_log_spread(log_t: Floats) -> tuple[float, float]:
    return float(log_t.mean()), math.log(max(float(log_t.std()), 2 * _NARROWEST))


def _thin_out(observed_s: Floats, cut_s: Floats) -> tuple[Floats, Floats]:
    """Reduce the rows to the number used for a fit, evenly from the shortest to the longest of each sort."""
    every = math.ceil((len(observed_s) + len(cut_s)) / _ROWS_FOR_FIT)
    return np.sort(observed_s)[every // 2 :: every], np.sort(cut_s)[every // 2 :: every]
