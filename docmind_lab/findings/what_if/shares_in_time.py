"""The share of recorded runs that would have been answered by a deadline, with intervals by session."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, COMPETING, AnswerTimes
from docmind_lab.statistics.completion_curves import aalen_johansen
from docmind_lab.statistics.interval import Floats, check_confidence
from docmind_lab.statistics.shares import wilson_bounds
from docmind_lab.tables.traces.trace_tables import Traces

# Wilson's interval of fewer is nearly all of 0 to 1, and its estimate one run's word.
_FEWEST_RUNS: Final = 5


def in_time_shares(traces: Traces, timeouts_s: Floats, confidence: float) -> pd.DataFrame:
    """Return the share of runs that would have been answered by each decision timeout, with an interval by session.

    Runs of a session are not independent. The interval is Wilson's, of as many independent runs as say as much: the
    runs over the design effect of their sessions, with Student's quantile for few of them (Rao and Scott, 1992,
    Biometrics 48:577). Runs that were cut before a timeout count with the share of Aalen and Johansen, and the fewer
    were watched until then, the fewer runs say as much (`Incidence.effective_runs`). Past the instant until which at
    least 5 do, the share is not known: NaN, between the lower bound at that instant and 1.

    One row per decision timeout: decision_timeout_s, runs, sessions, in_time, share, low, high, observed_share,
    known_until_s (inf where the share is known at every timeout).
    timeouts_s: decision timeouts, seconds, ascending.
    """
    known = _shares(traces, timeouts_s)
    return pd.DataFrame(
        {
            "decision_timeout_s": timeouts_s,
            "runs": len(traces),
            "sessions": known.sessions,
            "in_time": known.in_time.astype(np.int64),
            **known.with_bounds(confidence),
            "observed_share": known.observed,
            "known_until_s": known.until_s,
        }
    )


def predicted_shares(traces: Traces, timeouts_s: Floats, sessions: int, confidence: float) -> pd.DataFrame:
    """Return the share of runs answered in time to be expected in other sessions of the same kind.

    The interval is for the share that will be seen in them, and so wider than that of the share itself. It holds the
    shares that a score test of two samples does not tell from the one observed, at as many independent runs as the
    sessions say as much as (see `in_time_shares`).

    One row per decision timeout: decision_timeout_s, sessions, share, low, high, observed_share.
    timeouts_s: decision timeouts, seconds. sessions: how many sessions will be seen. confidence: probability with which
    their share lies within the bounds. Raises: ConfigurationError (there are no sessions to predict, or fewer than two
    to learn from).
    """
    known = _shares(traces, timeouts_s)
    if sessions < 1 or known.sessions < 2:
        raise ConfigurationError(
            f"sessions is {sessions}, and {known.sessions} were observed: learn from two or more, predict one or more"
        )
    z = float(stats.t.ppf(0.5 + check_confidence(confidence) / 2, known.sessions - 1))
    low, high = _two_sample_bounds(known.share, known.enough, known.enough * sessions / known.sessions, z)
    share, high = known.where_known(high)
    return pd.DataFrame(
        {
            "decision_timeout_s": timeouts_s,
            "sessions": sessions,
            "share": share,
            "low": low,
            "high": high,
            "observed_share": known.observed,
        }
    )


@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares in time by decision timeout, and how many independent runs would say as much.

    share, enough: at `until_s` for a later decision timeout. is_known: whether a decision timeout is not later.
    """

    sessions: int
    in_time: Floats
    share: Floats
    enough: Floats
    observed: Floats
    until_s: float
    is_known: NDArray[np.bool_]

    def where_known(self, high: Floats) -> tuple[Floats, Floats]:
        """Return shares and these upper bounds, NaN and 1 where nothing is known."""
        return np.where(self.is_known, self.share, np.nan), np.where(self.is_known, high, 1.0)

    def with_bounds(self, confidence: float) -> dict[str, Floats]:
        """Return share, low and high, with Wilson's bounds for as many independent runs, with Student's quantile."""
        quantile = float(stats.t.ppf(0.5 + check_confidence(confidence) / 2, max(1, self.sessions - 1)))
        low, high = wilson_bounds(self.share, self.enough, quantile)
        share, high = self.where_known(high)
        return {"share": share, "low": low, "high": high}


def _shares(traces: Traces, timeouts_s: Floats) -> _Shares:
    runs = traces.runs
    ended = runs["ended_at_s"].to_numpy()
    answered = (runs["outcome"] == "answered").to_numpy()
    at_s = np.where(np.isnan(ended), runs["observed_until_s"], ended)
    what = np.where(np.isnan(ended), CENSORED, np.where(answered, ANSWERED, COMPETING))
    session = pd.factorize(runs["session"])[0].astype(np.int64)
    sessions = int(session.max()) + 1
    times = AnswerTimes(at_s, what)
    curve = aalen_johansen(times)
    until_s = curve.known_until_s(_FEWEST_RUNS)
    asked_s = np.minimum(timeouts_s, until_s)
    place = np.searchsorted(curve.at_s, asked_s, side="right") - 1
    share, alone = (
        np.where(place >= 0, values[np.maximum(place, 0)], 0.0) for values in (curve.share, curve.variances())
    )
    effects = np.array(
        [
            _design_effect(curve.influences(times, float(each_s)), float(variance), session, sessions)
            for each_s, variance in zip(asked_s, alone, strict=True)
        ]
    )
    known = effects[np.isfinite(effects)]
    # Where all runs are alike nothing is seen of how sessions differ: they differ as at the other timeouts.
    effects = np.where(np.isfinite(effects), effects, max(1.0, known.max()) if len(known) else len(at_s) / sessions)
    return _Shares(
        sessions=sessions,
        in_time=((what == ANSWERED)[:, None] & (at_s[:, None] <= timeouts_s)).sum(axis=0).astype(np.float64),
        share=share,
        enough=np.maximum(1.0, curve.effective_runs(asked_s) / np.maximum(effects, 1.0)),
        observed=1.0 - ((what == CENSORED)[:, None] & (at_s[:, None] < timeouts_s)).mean(axis=0),
        until_s=until_s,
        is_known=timeouts_s <= until_s,
    )


def _design_effect(influences: Floats, alone: float, session: NDArray[np.int64], sessions: int) -> float:
    """How much larger the variance of a share is than with independent runs; NaN where all runs are alike.

    The variance is the jackknife's over sessions, which does not take a few large sessions for many.
    """
    # Sums of shares come out within some 1e-16 of what they are.
    if alone <= 1e-15 or sessions < 2:
        return math.nan
    sums = np.bincount(session, weights=influences, minlength=sessions)
    sizes, n = np.bincount(session, minlength=sessions), len(session)
    without = sums / np.maximum(1.0 - sizes / n, 1.0 / n)
    return float((sessions - 1) / sessions * np.sum(without**2) / alone)


def _two_sample_bounds(share: Floats, n: Floats, m: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the shares q of m runs for which (share − q)² ≤ z² p (1 − p) (1/n + 1/m), p the share of both together."""
    k, w = z * z * (1 / n + 1 / m), m / (n + m)
    here = (1 - w) * share
    a, b, c = 1 + k * w * w, -2 * share - k * w * (1 - 2 * here), share**2 - k * here * (1 - here)
    root = np.sqrt(np.maximum(0.0, b * b - 4 * a * c))
    return np.clip((-b - root) / (2 * a), 0.0, 1.0), np.clip((-b + root) / (2 * a), 0.0, 1.0)
