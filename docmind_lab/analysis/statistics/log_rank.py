"""Whether two arms answer at different rates over the whole time: the log-rank test, and a table of all pairs of arms.

The test takes its samples for independent. Arms of one study share their seeds (common random numbers), which makes
them alike beyond chance: the test is then conservative and misses differences that are there, but does not make them
up. The paired tests are in `differences`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from docmind_lab.analysis.statistics.answer_times import (
    ANSWERED,
    CENSORED,
    COMPETING,
    AnswerTimes,
    TimedOutAs,
    answer_times,
    arms_of,
)
from docmind_lab.analysis.statistics.corrections import holm


@dataclass(frozen=True)
class LogRank:
    """statistic: standard normal if the arms are alike, positive when the first answers faster; p_value: two-sided."""

    statistic: float
    p_value: float

    def __repr__(self) -> str:
        return f"LogRank: statistic {self.statistic:.2f}, p = {self.p_value:.2g}"

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"


def log_rank(first: AnswerTimes, second: AnswerTimes) -> LogRank:
    """The log-rank test of two arms with independent runs: `scipy.stats.logrank`.

    A run that failed, or left with a partial answer, has no answer ever: it stays among those that might have been
    answered until the last instant of either arm. So rates of answering are those of the completion curves, and giving
    up is no way to leave the count. Sources: Mantel (1966), Cancer Chemotherapy Reports 50:163; Gray (1988), Annals of
    Statistics 16:1141, for the risk set with competing ends. Without an answer while both arms have open runs there is
    nothing to tell them apart: statistic 0, p 1.
    """
    until_s = float(max(first.at_s.max(), second.at_s.max()))
    samples = [
        stats.CensoredData(
            uncensored=arm.at_s[arm.what == ANSWERED],
            right=np.concatenate((arm.at_s[arm.what == CENSORED], np.full((arm.what == COMPETING).sum(), until_s))),
        )
        for arm in (first, second)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = stats.logrank(*samples)
    # Nothing was answered while both arms had runs that might have been: scipy divides 0 by 0.
    if not np.isfinite(found.statistic):
        return LogRank(0.0, 1.0)
    return LogRank(float(found.statistic), float(found.pvalue))


def log_rank_table(runs: pd.DataFrame, timed_out_as: TimedOutAs = "censored") -> pd.DataFrame:
    """Every pair of arms: columns first, second, statistic, p_value, p_holm (corrected for all pairs of the table).

    Raises: ConfigurationError for no runs, and for runs of several conditions.
    """
    arms = {arm: answer_times(group, timed_out_as) for arm, group in arms_of(runs)}
    rows = []
    for first, second in combinations(arms, 2):
        found = log_rank(arms[first], arms[second])
        rows.append({"first": first, "second": second, "statistic": found.statistic, "p_value": found.p_value})
    frame = pd.DataFrame(rows, columns=["first", "second", "statistic", "p_value"])
    return frame.assign(p_holm=holm(frame["p_value"]) if len(frame) else frame["p_value"])
