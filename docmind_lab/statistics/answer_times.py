"""Answer times: when each run was answered, or why that is not known.

A run is *answered* at the instant its caller had the answer. A *partial* answer and a failure end a run as well, and
another way: they compete with the answer, which then never comes. A run that *timed out* or is *unfinished* is
censored: all that is known is that no answer had come by then. It stays in every number; no average is over answered
runs only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from docmind_lab.core.errors import ConfigurationError

CENSORED: Final = 0
ANSWERED: Final = 1
COMPETING: Final = 2
_KINDS: Final = {ANSWERED: "answered", CENSORED: "censored", COMPETING: "ended without an answer"}


@dataclass(frozen=True, eq=False)
class AnswerTimes:
    """The end of each run of one arm: two arrays of one length, with an entry for each run.

    at_s: seconds since the run's start at which it was answered, ended otherwise, or was last observed.
    what: ANSWERED, COMPETING or CENSORED.
    """

    at_s: NDArray[np.float64]
    what: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.at_s)

    def __repr__(self) -> str:
        counts = (f"{(self.what == kind).sum()} {name}" for kind, name in _KINDS.items())
        return f"AnswerTimes: {len(self)} runs, {', '.join(counts)}"

    @property
    def known_until_s(self) -> float:
        """The instant up to which the share answered is known; inf if the end of each last run is known."""
        last_s = float(self.at_s.max())
        return last_s if (self.what[self.at_s == last_s] == CENSORED).any() else float("inf")


def answer_times(runs: pd.DataFrame) -> AnswerTimes:
    """Return the answer times of one arm's runs, in their order.

    runs: rows of the table `runs`. Censored are unfinished runs at their horizon, and timed-out runs where they were
    cut, but not before their deadline: a run that gave up early had no answer by it, and counts so. Hence the share
    answered by the deadline is exactly that of the runs. Where the instant of the cut depends on what a run was at (as
    with a stop flag between steps), what a curve says past the deadline rests on cut runs being like those not cut.
    Raises: ConfigurationError for no runs, or an ended run without the instant of its end.
    """
    if runs.empty:
        raise ConfigurationError("runs is empty: measure some runs first")
    outcome = runs["outcome"].astype("str").to_numpy()
    returned_at_s = runs["returned_at_s"].to_numpy(dtype="float64")
    unfinished, timed_out = outcome == "unfinished", outcome == "timed_out"
    ended_nowhere = np.isnan(returned_at_s) & ~unfinished
    if ended_nowhere.any():
        raise ConfigurationError(
            f"returned_at_s is missing for an outcome {outcome[ended_nowhere][0]}: such a run is unfinished"
        )
    at_s = np.where(unfinished, runs["horizon_s"].to_numpy(dtype="float64"), returned_at_s)
    at_s = np.where(timed_out, np.maximum(at_s, runs["decision_timeout_s"].to_numpy(dtype="float64")), at_s)
    what = np.where(outcome == "answered", ANSWERED, COMPETING)
    return AnswerTimes(at_s, np.where(unfinished | timed_out, CENSORED, what).astype("int64"))
