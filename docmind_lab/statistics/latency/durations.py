"""Fits one kind of duration: observed quantiles, a family of distributions, and the table for a profile.

fit_durations(Sample(observed_s, cut_s))     # DurationFit: table, empirical quantiles, family, where it fits badly
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, AnswerTimes
from docmind_lab.statistics.completion_curves import aalen_johansen, completion_curve
from docmind_lab.statistics.latency.families import FittedFamily, Floats, best_family
from docmind_lab.statistics.latency.quantiles import DurationFit, QuantileTable

# Below it a family is a guess: the standard error of a p95 is then a quarter of it or more.
_FEWEST_FOR_FIT: Final = 20
# Lilliefors (1967), JASA 62:399: the distance that a normal with both parameters estimated exceeds in 5 % of large
# samples, times the root of their size. Where rows were cut it widens as the bands of Hall and Wellner (1980),
# Biometrika 67:133, do.
_LILLIEFORS: Final = 0.886


@dataclass(frozen=True, eq=False)
class Sample:
    """Durations of one kind, in seconds. observed_s: those that ended. cut_s: those that were cut before their end."""

    observed_s: Floats
    cut_s: Floats

    def __len__(self) -> int:
        return len(self.observed_s) + len(self.cut_s)


def fit_durations(sample: Sample, what: str) -> DurationFit:
    """Fit one sample of durations: its table is that of a family, or of what was observed if that contradicts it.

    what: its name, for errors. Raises: ConfigurationError when every row was cut.
    """
    if not len(sample.observed_s):
        raise ConfigurationError(
            f"{what}: all {len(sample)} rows were cut, so no duration was observed; measure with a longer timeout, "
            "or say with ok which outcomes mean a complete answer"
        )
    at_s, share, low, high, allowed = _observed_shares(sample)
    family = _family_of(sample)
    # Sums of shares come out within some 1e-16 of 1.
    known_to = 1.0 if share[-1] > 1 - 1e-9 else float(share[-1])
    levels = _levels(len(sample))
    places = np.minimum(np.searchsorted(share, levels[levels <= known_to] - 1e-12), len(at_s) - 1)
    evidence: dict[str, Any] = {
        "observed": len(sample.observed_s),
        "cut": len(sample.cut_s),
        "known_to": known_to,
        "known_to_s": float(at_s[-1]),
        "levels": _floats(levels[levels <= known_to]),
        "empirical_s": _floats(at_s[places]),
        "low": _floats(low[places]),
        "high": _floats(high[places]),
    }
    seen = at_s[places]
    if family is None:
        longest_s = max(float(at_s[-1]), float(sample.cut_s.max(initial=0.0)))
        table = QuantileTable(_floats(levels), _floats([*seen, *np.full(len(levels) - len(seen), longest_s)]))
        return DurationFit(table=table, used="empirical", **evidence)
    # The outermost quantiles of so many rows, in place of a duration of 0 and an infinite one.
    edge = 0.5 / len(sample)
    inner = np.clip(levels, edge, 1 - edge)
    fitted_s = family.quantile(inner)
    misfit = _misfit(family, at_s, share, allowed)
    used = "fitted" if misfit["distance"] <= misfit["allowed"] else "empirical"
    if used == "empirical":
        # Beyond what was observed: the family, given that a duration is longer than that.
        left = float(1 - family.share(at_s[-1:])[0])
        beyond = 1 - (1 - inner[len(seen) :]) * min(1.0, left / max(1 - known_to, edge))
        values_s = np.maximum.accumulate([*seen, *np.maximum(family.quantile(beyond), at_s[-1])])
    else:
        values_s = np.maximum.accumulate(fitted_s)
    return DurationFit(
        table=QuantileTable(_floats(levels), _floats(values_s)),
        used=used,
        fitted_s=_floats(fitted_s[: len(seen)]),
        family=family.family,
        parameters=family.parameters(),
        **misfit,
        **evidence,
    )


def _observed_shares(sample: Sample) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return instants, the share of durations over by each, its band, and how far a family may be off."""
    what = np.repeat([ANSWERED, CENSORED], [len(sample.observed_s), len(sample.cut_s)])
    times = AnswerTimes(np.concatenate([sample.observed_s, sample.cut_s]), what.astype("int64"))
    curve = completion_curve(times, horizon_s=0.0)
    curve = curve[curve["events"] > 0]
    result = aalen_johansen(times)
    steps = result.answered > 0
    left, variance = 1 - result.share[steps], result.variances()[steps]
    # The root of n times the standard error's square, over what is left: 1 everywhere when nothing was cut.
    growth = left + len(times) * np.divide(variance, left, out=np.zeros_like(left), where=left > 1e-9)
    share, low, high = (np.minimum(1.0, curve[name].to_numpy()) for name in ("share", "low", "high"))
    allowed = _LILLIEFORS / math.sqrt(len(times)) * np.maximum.accumulate(growth)
    return curve["at_s"].to_numpy(), share, low, high, allowed


def _family_of(sample: Sample) -> FittedFamily | None:
    positive = sample.observed_s[sample.observed_s > 0]
    if len(positive) < _FEWEST_FOR_FIT or float(np.ptp(np.log(positive))) < 1e-6:
        return None
    # A duration of 0 is one that was rounded down.
    smallest_s = float(positive.min()) / 2
    cut_s = sample.cut_s[sample.cut_s > smallest_s]
    return best_family(np.maximum(sample.observed_s, smallest_s), cut_s)


def _misfit(family: FittedFamily, at_s: Floats, share: Floats, allowed: Floats) -> dict[str, Any]:
    """Return the difference between the shares where it is largest relative to what chance allows."""
    model, before = family.share(at_s), np.concatenate(([0.0], share[:-1]))
    away = np.maximum(np.abs(model - share), np.abs(model - before))
    place = int((away / allowed).argmax())
    return {
        "distance": float(away[place]),
        "distance_at_s": float(at_s[place]),
        "allowed": float(allowed[place]),
    }


def _levels(rows: int) -> Floats:
    """Return the levels of quantiles: hundredths, and finer ones near 1 where there are enough rows."""
    finer = [level for level, fewest in ((0.995, 400), (0.999, 2000)) if rows >= fewest]
    return np.array([*(step / 100 for step in range(100)), *finer, 1.0])


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
