"""The share of runs answered by each instant, with a confidence band. Every run counts.

    completion_curve(answer_times(runs), horizon_s)        a frame, one row for each instant at which a curve steps

The estimator is that of Aalen and Johansen: other ends, such as a failure, compete with an answer. Without them it is
one minus that of Kaplan and Meier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, AnswerTimes
from docmind_lab.statistics.interval import Floats, check_confidence
from docmind_lab.statistics.shares import share_interval


@dataclass(frozen=True, eq=False)
class Incidence:
    """A cumulative incidence of answers, with one entry for each distinct instant of the runs, ascending.

    at_s: seconds since the run's start. at_risk: runs not ended nor censored just before. answered, ended: runs that
    were answered, and that ended in any way, at it. open_before: share of runs without any end just before. share:
    share answered by then, at it included. censored_before: runs censored at earlier instants.
    """

    at_s: Floats
    at_risk: Floats
    answered: Floats
    ended: Floats
    open_before: Floats
    share: Floats
    censored_before: Floats

    @property
    def open_after(self) -> Floats:
        """Share of runs without any end just after each instant."""
        return self.open_before * (1.0 - self.ended / self.at_risk)

    def effective_runs(self, at_s: Floats) -> Floats:
        """Return how many runs that nothing censored would say as much of the share at these instants.

        As many as would have left the same number at risk: runs at risk over the share open. All runs before the first
        censoring; what is censored at an instant was at risk at it. Source: Peto et al. (1977), British Journal of
        Cancer 35:1, whose variance is the binomial one of this number; it does not shrink where few are at risk, as
        Greenwood's does (Dorey and Korn, 1987, Statistics in Medicine 6:679).
        """
        place = np.minimum(np.searchsorted(self.at_s, at_s, side="left"), len(self.at_s) - 1)
        return np.asarray(self.at_risk[place] / self.open_before[place])

    def known_until_s(self, fewest: int) -> float:
        """Return the instant after which fewer than so many effective runs are left; inf if there is none.

        fewest: the fewest effective runs by which a share is said. Runs that nothing censored are enough, however few.
        """
        all_censored = self.censored_before[-1] + self.at_risk[-1] - self.ended[-1]
        censored = np.diff(self.censored_before, append=all_censored)
        left, open_after = self.at_risk - self.ended - censored, self.open_after
        runs = np.divide(left, open_after, out=np.full_like(left, np.inf), where=open_after > 0)
        few = np.flatnonzero((censored > 0) & (runs < fewest))
        return float(self.at_s[few[0]]) if len(few) else float("inf")

    def influences(self, times: AnswerTimes, at_s: float) -> Floats:
        """Return the derivative of the share at an instant by the weight of each run; they add up to 0.

        The variance of the share is the sum of their squares; over groups of runs that are not independent, that of
        their sums. Source: the infinitesimal jackknife, Jaeckel (1972), Bell Laboratories Memorandum 72-1215-11.
        """
        steps = np.diff(self.share, prepend=0.0)
        left = self.at_risk - self.ended
        each = np.divide(1.0, left, out=np.zeros_like(left), where=left > 0)
        log_open = np.cumsum(self.ended / self.at_risk * each)
        by_others = np.cumsum(steps * np.concatenate(([0.0], log_open[:-1])))
        as_one_more = np.cumsum(steps / self.at_risk)
        last = int(np.searchsorted(self.at_s, at_s, side="right")) - 1
        if last < 0:
            return np.zeros(len(times))
        end = np.searchsorted(self.at_s, times.at_s)
        until = np.minimum(end, last)
        later = self.share[last] - self.share[until]
        own = np.where((times.what == ANSWERED) & (end <= last), (self.open_before / self.at_risk)[end], 0.0)
        gone = np.where(times.what == CENSORED, 0.0, each[end])
        return np.asarray(by_others[until] + (log_open[end] - gone) * later + own - as_one_more[until])

    def variances(self) -> Floats:
        """Return the variance of each share, by the delta method; Greenwood's without competing ends.

        Source: Marubini and Valsecchi, Analysing Survival Data from Clinical Trials and Observational Studies (1995),
        eq. 10.12; without censoring it is share × (1 − share) / runs. The square of share(t) − share(j) is multiplied
        out, so that running sums do for all instants what eq. 10.12 sums up for one.
        """
        a, b, c = self._terms()
        before = self.share
        squares, linear, constant = (
            np.cumsum(a),
            np.cumsum(a * before + c * self.open_before),
            np.cumsum(a * before**2 + b * self.open_before**2 + 2 * c * before * self.open_before),
        )
        return np.maximum(0.0, self.share**2 * squares - 2 * self.share * linear + constant)

    def _terms(self) -> tuple[Floats, Floats, Floats]:
        n, d, answered = self.at_risk, self.ended, self.answered
        left = n - d
        # Where nobody is left the share moves no more, and what this term is multiplied by is 0.
        a = np.divide(d, n * left, out=np.zeros_like(n), where=left > 0)
        return a, answered * (n - answered) / n**3, answered / n**2


def aalen_johansen(times: AnswerTimes) -> Incidence:
    """Return the cumulative incidence of answers. Runs that end or are censored at one instant were at risk at it.

    Source: Aalen and Johansen (1978), Scandinavian Journal of Statistics 5:141, for two ends that compete.
    """
    at_s, place = np.unique(times.at_s, return_inverse=True)
    all_runs = np.bincount(place).astype("float64")
    answered = np.bincount(place, weights=times.what == ANSWERED).astype("float64")
    censored = np.bincount(place, weights=times.what == CENSORED).astype("float64")
    ended = all_runs - censored
    at_risk = np.cumsum(all_runs[::-1])[::-1].astype("float64")
    open_after = np.cumprod(1.0 - ended / at_risk)
    open_before = np.concatenate(([1.0], open_after[:-1]))
    share = np.cumsum(open_before * answered / at_risk)
    return Incidence(at_s, at_risk, answered, ended, open_before, share, np.cumsum(censored) - censored)


def completion_curve(times: AnswerTimes, horizon_s: float, confidence: float = 0.95) -> pd.DataFrame:
    """Return the steps of one arm's curve: a row at 0 s, at each instant with an answer, and at the end.

    Columns: at_s, share (answered by then), low, high (pointwise band), at_risk (runs still open just before), events
    (runs answered at it). A curve ends at the horizon, or where its last runs were censored: past that nothing was
    observed. Up to the deadline nothing is censored, and share is answered / runs.
    The share is Aalen and Johansen's cumulative incidence of answers (see `Incidence`); partial answers and failures
    compete. The band is symmetric in log(−log(1 − share)), so it stays within 0 and 1: Kalbfleisch and Prentice, The
    Statistical Analysis of Failure Time Data (1980), section 1.4, as `scipy.stats.ecdf(…).sf.confidence_interval(
    method="log-log")` does without competing ends. At a share of 0 or 1 that band has no width, which would be a
    claim: there it is Wilson's, of the runs not censored so far.
    """
    result = aalen_johansen(times)
    low, high = _bands(result.share, result.variances(), len(times) - result.censored_before, confidence)
    start = share_interval(0, len(times), confidence)
    steps = pd.DataFrame(
        {
            "at_s": [0.0, *result.at_s],
            "share": [0.0, *result.share],
            "low": [start.low, *low],
            "high": [start.high, *high],
            "at_risk": np.array([len(times), *result.at_risk], dtype="int64"),
            "events": np.array([0, *result.answered], dtype="int64"),
        }
    )
    curve = steps[(steps["events"] > 0) | (steps.index == 0)]
    end_s = min(horizon_s, times.known_until_s)
    if float(curve["at_s"].iloc[-1]) < end_s:
        last = steps.iloc[[-1]].assign(at_s=end_s, events=0, at_risk=int((times.at_s >= end_s).sum()))
        curve = pd.concat([curve, last])
    return curve.reset_index(drop=True)


def _bands(share: Floats, variance: Floats, runs: Floats, confidence: float) -> tuple[Floats, Floats]:
    z = float(stats.norm.ppf(0.5 + check_confidence(confidence) / 2))
    open_share = 1.0 - share
    # Sums of shares come out within some 1e-16 of 0 and 1.
    inside = (share > 1e-12) & (open_share > 1e-12)
    safe = np.where(inside, open_share, 0.5)
    spread = np.exp(z * np.sqrt(variance) / (safe * np.abs(np.log(safe))))
    low, high = 1.0 - safe ** (1.0 / spread), 1.0 - safe**spread
    for place in np.flatnonzero(~inside):
        wilson = share_interval(round(float(share[place] * runs[place])), int(runs[place]), confidence)
        low[place], high[place] = wilson.low, wilson.high
    return low, high
