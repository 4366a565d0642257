"""What a replay answers, as rows: the share in time, what is left behind, and the runs at one decision timeout."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import to_frame, with_dtypes
from docmind_lab.analysis.traces.answer_rows import run_rows
from docmind_lab.analysis.traces.model import Traces
from docmind_lab.analysis.traces.outcomes import Replay
from docmind_lab.analysis.traces.rules import NamedRule
from docmind_lab.analysis.traces.shares import predicted_shares
from docmind_lab.core.budgets import Price
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import SCHEMA_VERSION


@dataclass(frozen=True, eq=False)
class Answers:
    """What would have become of recorded runs under each alternative at each decision timeout.

    frame: one row per alternative and decision timeout. Columns: arm, alternative, alternative_options,
    decision_timeout_s; runs, sessions, known_runs (those a trace can say of); in_time (runs), share, low, high (of
    all runs, by session), observed_share (share of runs of which it was observed; the rest had been cut before, and
    is estimated from the runs that went on longer), known_until_s (past it too few runs were watched: the share is
    NaN, and lies between low and 1; inf where all is known); judged_runs (runs that say whether they succeeded),
    good_share, good_low, good_high (share of those whose result was good by then, by session); partial, timed_out,
    failed, interrupted, unfinished (runs); overran (callers back more than 50 ms late), caller_overrun_median_s and
    caller_overrun_worst_s (of those that overran; inf: not back while the run was observed); means per run
    calls_after, busy_after_s, tokens_after and cost_after, NaN past known_until_s, lower bounds where lower_bounds is
    True.
    """

    traces: Traces
    frame: pd.DataFrame
    rules: tuple[NamedRule, ...]
    replay: Replay
    price: Price | None
    confidence: float

    def study(self, decision_timeout_s: float) -> Study:
        """Return the runs at one decision timeout as a study, for its figures, contrasts and sentences.

        Args:
            decision_timeout_s: The decision timeout, seconds.

        Raises:
            ConfigurationError: It is not positive and finite.
        """
        frames = [
            run_rows(
                self.traces,
                named,
                self.replay.under(named.rule, [decision_timeout_s]),
                float(decision_timeout_s),
                self.replay.behaviour.name,
            )
            for named in self.rules
        ]
        runs = with_dtypes("runs", pd.concat(frames, ignore_index=True))
        # Nothing is known of the system but its name, so no setting of the lab's can give it the choice.
        plain = {"asked": "runs", "reads_settings": False}
        systems = {str(name): {"kind": str(name), "title": str(name), **plain} for name in runs["workload"].unique()}
        manifest = {"schema_version": SCHEMA_VERSION, "systems": systems}
        return Study(runs, to_frame("calls", []), to_frame("events", []), manifest)

    def smallest(self, target: float = 0.95) -> float:
        """Return the smallest decision timeout whose share in time surely reaches the target; NaN if none does.

        The decision timeouts are looked at from the largest down, and the first that is not sure ends it.

        Args:
            target: Share of runs answered in time, above 0 and below 1.

        Raises:
            ConfigurationError: The target is not between 0 and 1.
        """
        if not 0 < target < 1:
            raise ConfigurationError(f"target must lie between 0 and 1, not {target:g}")
        curve = self.curve.sort_values("decision_timeout_s", ascending=False)
        best = math.nan
        for timeout_s, low in zip(curve["decision_timeout_s"], curve["low"], strict=True):
            if low < target:
                break
            best = float(timeout_s)
        return best

    def predict(self, sessions: int) -> pd.DataFrame:
        """Return the share in time to be expected in other sessions of the same kind, by decision timeout.

        Args:
            sessions: How many sessions will be seen.

        Returns:
            One row per decision timeout: decision_timeout_s, sessions, share, low, high (bounds for the share that will
            be seen in them), observed_share.

        Raises:
            ConfigurationError: There are no sessions to predict, or fewer than two were observed.
        """
        timeouts = self.curve["decision_timeout_s"].to_numpy()
        return predicted_shares(self.traces, timeouts, sessions, self.confidence)

    @functools.cached_property
    def curve(self) -> pd.DataFrame:
        """One row per decision timeout: who enforces it does not change which runs end in time."""
        return self.frame.drop_duplicates("decision_timeout_s")

    def reaching(self, timeout_s: float) -> list[int]:
        """Return the runs, by place, that are seen at work past a timeout and that every rule can say something of."""
        runs = self.traces.runs
        at_work = (~(runs["ended_at_s"] <= timeout_s) & (runs["observed_until_s"] > timeout_s)).to_numpy(copy=True)
        for named in self.rules:
            at_work &= self.replay.under(named.rule, [timeout_s]).known[:, 0]
        return [int(place) for place in np.flatnonzero(at_work)]
