"""The share of runs answered by each instant, with a confidence band: completion curves that count every run.

completion_curves(study.runs)        a frame, one row for each instant at which a curve steps
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.analysis.statistics.answer_times import (
    AnswerTimes,
    TimedOutAs,
    answer_times,
    arms_of,
)
from docmind_lab.analysis.statistics.incidence import Floats, aalen_johansen
from docmind_lab.analysis.statistics.interval import checked_confidence
from docmind_lab.analysis.statistics.shares import share_interval


def completion_curves(
    runs: pd.DataFrame, confidence: float = 0.95, timed_out_as: TimedOutAs = "censored"
) -> pd.DataFrame:
    """The steps of each arm's curve: from 0 s, a row for each instant with an answer, and one where the curve ends.

    Columns: arm (ordered categorical), at_s, share (answered by then), low, high (pointwise band), at_risk (runs still
    open just before), events (runs answered at it). A curve ends at the horizon, or where its last runs were censored:
    past that nothing was observed. Up to the deadline nothing is censored, and share is answered / runs.
    Raises: ConfigurationError for no runs, and for runs of several conditions.
    """
    frames = []
    for arm, group in arms_of(runs):
        curve = completion_curve(answer_times(group, timed_out_as), float(group["horizon_s"].max()), confidence)
        frames.append(curve.assign(arm=arm))
    names = [str(frame["arm"].iloc[0]) for frame in frames]
    frame = pd.concat(frames, ignore_index=True)
    frame["arm"] = pd.Categorical(frame["arm"], categories=names, ordered=True)
    return frame[["arm", "at_s", "share", "low", "high", "at_risk", "events"]]


def completion_curve(times: AnswerTimes, horizon_s: float, confidence: float = 0.95) -> pd.DataFrame:
    """One arm's curve: the columns of `completion_curves` but the arm.

    The share is Aalen and Johansen's cumulative incidence of answers (see `incidence`); partial answers and failures
    compete. The band is symmetric in log(−log(1 − share)), so it stays within 0 and 1: Kalbfleisch and Prentice, The
    Statistical Analysis of Failure Time Data (1980), section 1.4, as `scipy.stats.ecdf(…).sf.confidence_interval(
    method="log-log")` does without competing ends. At a share of 0 or 1 that band has no width, which would be a
    claim: there it is Wilson's, of the runs not censored so far.
    """
    found = aalen_johansen(times)
    low, high = _bands(found.share, found.variances(), len(times) - found.censored_before, confidence)
    start = share_interval(0, len(times), confidence)
    steps = pd.DataFrame(
        {
            "at_s": [0.0, *found.at_s],
            "share": [0.0, *found.share],
            "low": [start.low, *low],
            "high": [start.high, *high],
            "at_risk": np.array([len(times), *found.at_risk], dtype="int64"),
            "events": np.array([0, *found.answered], dtype="int64"),
        }
    )
    curve = steps[(steps["events"] > 0) | (steps.index == 0)]
    end_s = min(horizon_s, times.known_until_s)
    if float(curve["at_s"].iloc[-1]) < end_s:
        last = steps.iloc[[-1]].assign(at_s=end_s, events=0, at_risk=int((times.at_s >= end_s).sum()))
        curve = pd.concat([curve, last])
    return curve.reset_index(drop=True)


def _bands(share: Floats, variance: Floats, runs: Floats, confidence: float) -> tuple[Floats, Floats]:
    z = float(stats.norm.ppf(0.5 + checked_confidence(confidence) / 2))
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
