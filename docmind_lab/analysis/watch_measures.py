"""One measure of production beside a study: its intervals, a verdict, and how many more calls would settle it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy import stats

from docmind_lab.analysis.statistics.interval import Floats, Interval, difference_of
from docmind_lab.analysis.statistics.sample_size import TooFewRuns, gated_quantile
from docmind_lab.analysis.statistics.shares import share_interval
from docmind_lab.analysis.text import join_names, percent
from docmind_lab.core.deadlines import HELD_WITHIN_S

Verdict = Literal["as the study said", "better", "worse", "cannot tell"]
GROUP_CONFIDENCE: Final = 0.95
# A number of calls that settles a difference does so with this probability, if production stays as it is.
_POWER: Final = 0.8
# More calls than this are as good as no number of them.
_MOST_CALLS: Final = 100_000
_STEP: Final = 1.25


@dataclass(frozen=True)
class Measure:
    """A number by which production is set beside a study.

    Args:
        column: Column of runs and calls.
        words: Its name.
        quantile: The quantile of the column; None for the share of runs in which it is true.
        worse: 1 if more is worse, −1 if less is.
        margin: A difference up to this one does not matter, in the measure's unit.
        unit: Unit after a number.
    """

    column: str
    words: str
    quantile: float | None
    worse: Literal[1, -1]
    margin: float
    unit: str = ""

    def interval(self, values: Floats, confidence: float) -> Interval | TooFewRuns:
        """Return the measure of these runs with its interval, or how many runs are missing for it."""
        if self.quantile is None:
            return share_interval(int(values.sum()), len(values), confidence)
        return gated_quantile(values, self.quantile, confidence)


# Margins are those of a choice between alternatives (`analysis.findings.choice`).
SHARE_MARGIN: Final = 0.05


MEASURES: Final = (
    Measure("answered_in_time", "answered by the deadline", None, -1, SHARE_MARGIN),
    Measure("was_cut", "cut by the deadline", None, 1, SHARE_MARGIN),
    Measure("caller_overrun_s", "median overrun", 0.5, 1, HELD_WITHIN_S, " s"),
    Measure("caller_overrun_s", "p95 overrun", 0.95, 1, HELD_WITHIN_S, " s"),
)
"""The measures that production is held to; all of a group have one level of significance together."""


CONFIDENCE: Final = 1.0 - 2.0 * (1.0 - GROUP_CONFIDENCE) / len(MEASURES)
"""Confidence of each interval: one in twenty groups that are as the study said is called worse, at most."""


@dataclass(frozen=True)
class Comparison:
    """One measure of one group.

    Attributes:
        measure: What is compared.
        study: Its interval in the study.
        production: Its interval in production.
        worse_by: How much worse production is; None with too few runs or calls.
        verdict: What the intervals show.
        more_calls: How many more calls would settle it; 0 if it is settled, inf if no number would.
        more_runs: How many more runs of the study would settle it where no number of calls does.
    """

    measure: Measure
    study: Interval | TooFewRuns
    production: Interval | TooFewRuns
    worse_by: Interval | None
    verdict: Verdict
    more_calls: float = 0.0
    more_runs: float = 0.0


def compare_measure(measure: Measure, studied: dict[str, Floats], produced: dict[str, Floats]) -> Comparison:
    """Return how production compares with the study in one measure.

    Args:
        measure: What is compared.
        studied: Column → its values in the study's runs.
        produced: Column → its values in production's calls.
    """
    of_study, of_calls = studied[measure.column], produced[measure.column]
    study, production = measure.interval(of_study, CONFIDENCE), measure.interval(of_calls, CONFIDENCE)
    worse_by = _worse_by(measure, study, production)
    verdict = _decide(measure, worse_by)
    if verdict != "cannot tell":
        return Comparison(measure, study, production, worse_by, verdict)
    more_calls = _more(of_calls, lambda values: _worse_by(measure, study, _sure(measure, values)), measure)
    if math.isfinite(more_calls):
        return Comparison(measure, study, production, worse_by, verdict, more_calls)
    many = _sure(measure, _as_many(of_calls, _MOST_CALLS))
    more_runs = _more(of_study, lambda values: _worse_by(measure, _sure(measure, values), many), measure)
    return Comparison(measure, study, production, worse_by, verdict, math.inf, more_runs)


def _worse_by(measure: Measure, study: Interval | TooFewRuns, production: Interval | TooFewRuns) -> Interval | None:
    if isinstance(study, TooFewRuns) or isinstance(production, TooFewRuns):
        return None
    return difference_of(*((production, study) if measure.worse > 0 else (study, production)))


def _decide(measure: Measure, worse_by: Interval | None) -> Verdict:
    if worse_by is None:
        return "cannot tell"
    if worse_by.high < -measure.margin:
        return "better"
    # First, so that a difference that is sure but too small to matter is none.
    if worse_by.high <= measure.margin:
        return "as the study said"
    return "worse" if worse_by.low > 0.0 else "cannot tell"


def _more(values: Floats, worse_by: Callable[[Floats], Interval | None], measure: Measure) -> float:
    """Return how many more values like these would settle the difference; inf if no number would."""
    size = float(max(len(values), 1))
    while size < _MOST_CALLS:
        size *= _STEP
        if _decide(measure, worse_by(_as_many(values, math.ceil(size)))) != "cannot tell":
            return float(math.ceil(size) - len(values))
    return math.inf


def _as_many(values: Floats, size: int) -> Floats:
    """Return so many values with the same distribution."""
    return np.sort(values)[np.arange(size) * len(values) // size]


def _sure(measure: Measure, values: Floats) -> Interval | TooFewRuns:
    """Return an interval so wide that what it settles is settled with the probability `_POWER` by as many new values.

    The estimate of new values strays from that of these: the quantiles of the confidence and of the power add up.
    """
    wide = 2.0 * float(stats.norm.cdf(stats.norm.ppf(0.5 + CONFIDENCE / 2) + stats.norm.ppf(_POWER))) - 1.0
    interval = measure.interval(values, wide)
    return interval if isinstance(interval, TooFewRuns) else replace(interval, confidence=CONFIDENCE)


def measures_in_words(comparisons: Sequence[Comparison]) -> str:
    """Name the measures in a sentence."""
    measures = [comparison.measure for comparison in comparisons]
    return join_names([f"the {'' if measure.quantile else 'share '}{measure.words}" for measure in measures])


def what_would_settle(comparisons: Sequence[Comparison]) -> str:
    """Say in words how many more calls or runs would settle what these comparisons leave open."""
    more_calls = max(comparison.more_calls for comparison in comparisons)
    if math.isfinite(more_calls):
        return f"about {_rounded(more_calls)} more would"
    more_runs = max(comparison.more_runs for comparison in comparisons)
    if math.isfinite(more_runs) and more_runs > 0:
        return f"the study has too few runs for any number of calls: about {_rounded(more_runs)} more runs would do"
    return "no number of calls would: the difference is as large as the one that counts as none"


def _rounded(count: float) -> str:
    """Format a count with two digits that are not 0, rounded up."""
    unit = 10 ** max(0, len(str(int(count))) - 2)
    return f"{math.ceil(count / unit) * unit:,}"


def share_in_words(share: Interval) -> str:
    """Format a share with its interval: "93% [89%, 96%]"."""
    return f"{percent(share.estimate)} [{percent(share.low)}, {percent(share.high)}]"


def measure_text(measure: Measure, value: Interval | TooFewRuns) -> str:
    """Format a measure with its interval: "93% [89%, 96%]", "0.008 s [0.006, 0.012]", or what is missing for it."""
    if isinstance(value, TooFewRuns):
        return value.text()
    return share_in_words(value) if measure.quantile is None else value.text(3, measure.unit.strip())
