"""Estimates how much of a call's slowness belongs to its session.

result = fit_correlation(slowness)      # rows: session, part, seconds
result.in_words()                      # with an interval, and whether chance would do
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy import special

# Fewer sessions with several calls say nothing of how sessions differ.
_FEWEST_SESSIONS: Final = 10
_RESAMPLES: Final = 1000


@dataclass(frozen=True)
class SessionCorrelation:
    """The correlation of the normal scores of two calls of one session, as `LatencyProfile.correlation` means it.

    estimate: mean product of the scores of all pairs of calls of a session. low: lower bound of its 95 % interval, from
    resampled sessions. sessions: number of sessions with several calls. calls: number of calls in those sessions.
    """

    estimate: float
    low: float
    high: float
    sessions: int
    calls: int

    @property
    def correlation(self) -> float:
        """The correlation for a profile: the estimate, or 0 if it cannot be told from chance."""
        return round(min(self.estimate, 1.0), 3) if self.low > 0 else 0.0

    def in_words(self) -> str:
        """Describe the correlation in one sentence."""
        text = (
            f"Of a call's slowness {self.estimate:.2f} [{self.low:.2f}, {self.high:.2f}] is its session's (correlation "
            f"in {self.sessions} sessions of {self.calls} complete calls; 95 %, bootstrap of sessions)"
        )
        return f"{text}." if self.low > 0 else f"{text}: not told from chance, so calls count as independent."


def fit_correlation(slowness: pd.DataFrame) -> SessionCorrelation | None:
    """Estimate the correlation within sessions; None with fewer than ten sessions of several calls.

    Calls that were cut are not in it, so where many were, the estimate is too low.

    slowness: one row per call and part of its latency. Columns: session (str; empty: not known), part (str: only equal
    parts are compared), seconds (float).
    """
    rows = slowness[(slowness["session"] != "") & slowness["seconds"].notna()]
    grouped = rows.groupby("part", sort=True)["seconds"]
    scores = special.ndtri((grouped.rank() - 0.5) / grouped.transform("size"))
    sums = (
        rows.assign(score=scores, square=scores**2)
        .groupby(["part", "session"], sort=True)
        .agg(total=("score", "sum"), squares=("square", "sum"), calls=("score", "size"))
        .reset_index()
    )
    sums = sums[sums["calls"] > 1]
    sums["products"] = sums["total"] ** 2 - sums["squares"]
    # Scores of midranks, with their ties, have a variance a little below 1.
    variances = (scores**2).groupby(rows["part"]).mean().reindex(sums["part"]).to_numpy()
    sums["pairs"] = sums["calls"] * (sums["calls"] - 1) * variances
    of_session = sums.groupby("session", sort=True)[["products", "pairs"]].sum()
    of_session = of_session[of_session["pairs"] > 0]
    if len(of_session) < _FEWEST_SESSIONS:
        return None
    products, pairs = of_session["products"].to_numpy(), of_session["pairs"].to_numpy()
    chosen = np.random.default_rng(0).integers(len(products), size=(_RESAMPLES, len(products)))
    resampled = products[chosen].sum(axis=1) / pairs[chosen].sum(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    part = sums.groupby("part")["calls"].sum().max()
    estimate = float(products.sum() / pairs.sum())
    return SessionCorrelation(estimate, float(low), float(high), len(products), int(part))
