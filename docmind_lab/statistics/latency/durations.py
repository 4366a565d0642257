"""Fits one kind of duration: observed quantiles, a family of distributions, and the table for a profile.

fit_durations(Sample(observed_s, cut_s))     # DurationFit: table, empirical quantiles, family, where it fits badly
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal, get_args

import numpy as np

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, AnswerTimes
from docmind_lab.statistics.completion_curves import aalen_johansen, completion_curve
from docmind_lab.statistics.latency.families import FittedFamily, Floats, best_family
from docmind_lab.statistics.latency.profile import QuantileTable

QuantileTables = Literal["auto", "fitted", "empirical"]
"""Where a table comes from: the family, the observed quantiles, or the family unless the data contradict it."""

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
        text = f"{self.observed} durations observed, {self.cut} cut"
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fit as JSON types; `from_dict` reads it back equal. NaN becomes null."""
        out = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in asdict(self).items()
        }
        return out | {name: list(value) for name, value in out.items() if isinstance(value, tuple)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DurationFit:
        """Read a fit that `to_dict` wrote. Raises: ConfigurationError if it did not."""
        try:
            values: dict[str, Any] = {item.name: data[item.name] for item in fields(cls)}
            table = QuantileTable(*(tuple(values["table"][name]) for name in ("levels", "values_s")))
        except (KeyError, TypeError) as error:
            raise ConfigurationError(f"evidence of a fit cannot be read: {error}; fit the profile again") from error
        for name, value in values.items():
            values[name] = math.nan if value is None else tuple(value) if isinstance(value, list) else value
        return cls(**(values | {"table": table}))


def fit_durations(
    sample: Sample, what: str, tables: QuantileTables = "auto", hang_probability: float = 0.0
) -> DurationFit:
    """Fit one sample of durations. Raises: ConfigurationError when every row was cut, or tables is not known.

    what: its name, for errors. hang_probability: share that never ends, apart from which everything is told.
    """
    if tables not in get_args(QuantileTables):
        raise ConfigurationError(f"tables is {tables!r}: choose {', '.join(get_args(QuantileTables))}")
    if not len(sample.observed_s):
        raise ConfigurationError(
            f"{what}: all {len(sample)} rows were cut, so no duration was observed; measure with a longer timeout, "
            "or say with ok which outcomes mean a complete answer"
        )
    at_s, share, low, high, allowed = _observed_shares(sample, hang_probability)
    family = _family_of(sample, hang_probability)
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
    used = tables if tables != "auto" else "fitted" if misfit["distance"] <= misfit["allowed"] else "empirical"
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


def _observed_shares(sample: Sample, hang_probability: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return instants, the share of durations over by each, its band, and how far a family may be off.

    Of durations that end at all.
    """
    what = np.repeat([ANSWERED, CENSORED], [len(sample.observed_s), len(sample.cut_s)])
    times = AnswerTimes(np.concatenate([sample.observed_s, sample.cut_s]), what.astype("int64"))
    curve = completion_curve(times, horizon_s=0.0)
    curve = curve[curve["events"] > 0]
    result = aalen_johansen(times)
    steps = result.answered > 0
    left, variance = 1 - result.share[steps], result.variances()[steps]
    # The root of n times the standard error's square, over what is left: 1 everywhere when nothing was cut.
    growth = left + len(times) * np.divide(variance, left, out=np.zeros_like(left), where=left > 1e-9)
    ends = 1 - hang_probability
    share, low, high = (np.minimum(1.0, curve[name].to_numpy() / ends) for name in ("share", "low", "high"))
    allowed = _LILLIEFORS / math.sqrt(len(times)) * np.maximum.accumulate(growth) / ends
    return curve["at_s"].to_numpy(), share, low, high, allowed


def _family_of(sample: Sample, hang_probability: float) -> FittedFamily | None:
    positive = sample.observed_s[sample.observed_s > 0]
    if len(positive) < _FEWEST_FOR_FIT or float(np.ptp(np.log(positive))) < 1e-6:
        return None
    # A duration of 0 is one that was rounded down.
    smallest_s = float(positive.min()) / 2
    cut_s = sample.cut_s[sample.cut_s > smallest_s]
    return best_family(np.maximum(sample.observed_s, smallest_s), cut_s, hang_probability)


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
