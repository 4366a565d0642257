"""The share answered by each instant when other ends compete with an answer: Aalen and Johansen's estimator, as arrays.

`completion_curves` and `restricted_means` are made of it. Without competing ends it is one minus Kaplan and Meier's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from docmind_lab.analysis.statistics.answer_times import ANSWERED, CENSORED, AnswerTimes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Incidence:
    """One entry for each distinct instant of the runs, ascending.

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

    def variances(self) -> Floats:
        """The variance of each share, by the delta method; Greenwood's without competing ends.

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

    def restricted_mean(self, tau_s: float) -> tuple[float, float]:
        """The mean time without an answer within the first tau_s seconds, and its variance (s, s²).

        It is tau minus the area under the share answered. Its variance is that of `variances`, carried through the
        integral over time: a step at t weighs tau − t. Without competing ends it is that of Klein and Moeschberger,
        Survival Analysis (2003), eq. 4.5.2; without censoring, the variance of min(time, tau) over the runs / runs.
        """
        left_s = np.maximum(0.0, tau_s - self.at_s)
        gains = left_s * np.diff(self.share, prepend=0.0)
        still_to_gain = np.cumsum(gains[::-1])[::-1] - gains
        a, b, c = self._terms()
        weight = left_s * self.open_before
        variance = np.sum((a * still_to_gain**2 + b * weight**2 - 2 * c * still_to_gain * weight)[left_s > 0])
        return float(tau_s - gains.sum()), float(max(0.0, variance))

    def _terms(self) -> tuple[Floats, Floats, Floats]:
        n, d, answered = self.at_risk, self.ended, self.answered
        left = n - d
        # Where nobody is left the share moves no more, and what this term is multiplied by is 0.
        a = np.divide(d, n * left, out=np.zeros_like(n), where=left > 0)
        return a, answered * (n - answered) / n**3, answered / n**2


def aalen_johansen(times: AnswerTimes) -> Incidence:
    """The cumulative incidence of answers. Runs that end or are censored at one instant were all at risk at it.

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
