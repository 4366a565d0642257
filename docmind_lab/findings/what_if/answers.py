"""What a replay answers, as rows: the share in time, what is left behind, and the runs at one decision timeout."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.levels import SCHEMA_VERSION
from docmind_lab.findings.study import Study
from docmind_lab.findings.what_if.outcomes import ENDINGS, Replay, RunOutcomes
from docmind_lab.findings.what_if.shares_in_time import predicted_shares
from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.frames import blank_row, to_frame, with_dtypes
from docmind_lab.tables.records import TABLES
from docmind_lab.tables.traces.rules import NamedRule
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, Traces


@dataclass(frozen=True, eq=False)
class Answers:
    """What would have become of recorded runs under each alternative at each decision timeout.

    frame: one row per alternative and decision timeout. Columns: arm, alternative, alternative_options,
    decision_timeout_s; runs, sessions, known_runs (those a trace can say of); in_time (runs), share, low, high (of all
    runs, by session), observed_share (share of runs of which it was observed; the rest had been cut before, and is
    estimated from the runs that went on longer), known_until_s (past it too few runs were watched: the share is NaN,
    and lies between low and 1; inf where all is known); partial, timed_out, failed, interrupted, unfinished (runs);
    overran (callers back more than 50 ms late), caller_overrun_median_s and caller_overrun_worst_s (of those that
    overran; inf: not back while the run was observed); means per run calls_after, busy_after_s and tokens_after, NaN
    past known_until_s, lower bounds where lower_bounds is True.
    """

    traces: Traces
    frame: pd.DataFrame
    rules: tuple[NamedRule, ...]
    replay: Replay
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


def arm_rows(outcomes: RunOutcomes, timeouts: Floats, traces: Traces, known_until_s: pd.Series[float]) -> pd.DataFrame:
    """Return the columns of a what-if that say what one alternative does and leaves behind, by decision timeout.

    What is left behind is NaN past the instant until which the share in time is known: of the runs that reach such a
    deadline none, or hardly any, was watched.

    outcomes: what becomes of the runs under it. timeouts: decision timeouts, seconds. known_until_s: the instant until
    which the share in time is known, for each decision timeout.
    """
    known, is_watched = outcomes.known, timeouts <= known_until_s.to_numpy()
    counts = {
        name: ((outcomes.outcome == place) & known).sum(axis=0)
        for place, name in enumerate(ENDINGS)
        if name != "answered"
    }
    late = np.where(np.isnan(outcomes.returned_at_s), np.inf, np.maximum(0.0, outcomes.returned_at_s - timeouts))
    overran = known & (late > HELD_WITHIN_S)
    lateness = np.where(overran, late, np.nan)
    calls = traces.spans[traces.spans["kind"].isin(CALL_KINDS)]
    # Where no call was recorded it is not known what one would have gone on doing, and it is not nothing.
    has_calls, has_tokens = len(calls) > 0, calls["output_tokens"].notna().any()
    columns = {
        "known_runs": known.sum(axis=0),
        **counts,
        "overran": overran.sum(axis=0),
        "caller_overrun_median_s": [_of(np.median, lateness[:, i]) for i in range(len(timeouts))],
        "caller_overrun_worst_s": [_of(np.max, lateness[:, i]) for i in range(len(timeouts))],
        "calls_after": _mean(outcomes.calls_after, known & has_calls & is_watched),
        "busy_after_s": _mean(outcomes.busy_after_s, known & has_calls & is_watched),
        "tokens_after": _mean(outcomes.tokens_after, known & has_tokens & is_watched),
        "lower_bounds": (outcomes.censored & known).any(axis=0),
    }
    return pd.DataFrame(columns)


def _mean(values: Floats, known: np.ndarray[Any, Any]) -> Floats:
    total = known.sum(axis=0)
    return np.asarray(np.where(total > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(total, 1), np.nan))


def _of(statistic: Any, values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(statistic(known)) if len(known) else 0.0


def run_rows(traces: Traces, named: NamedRule, outcomes: RunOutcomes, timeout_s: float, behaviour: str) -> pd.DataFrame:
    """Return the rows of `runs` of one alternative, without those that a trace cannot say of.

    outcomes: what becomes of them under it, at one decision timeout. timeout_s: that timeout, seconds. behaviour: name
    of what the server does with a call whose client has left.
    """
    traced = traces.runs
    labels = [json.loads(each) for each in traced["labels"]]
    n = len(traced)
    stopped = {"partial": "deadline", "timed_out": "deadline", "failed": "error", "interrupted": "interrupted"}
    ended = outcomes.columns(timeout_s)
    columns = (
        blank_row(TABLES["runs"][1])
        | ended
        | {
            "study_id": "what-if",
            "run_id": [f"{each}-{named.alternative}" for each in traced["trace_id"]],
            "workload": [each.get("workload", source) for each, source in zip(labels, traced["source"], strict=True)],
            "alternative": named.alternative,
            "alternative_options": named.options,
            "seed": np.arange(n),
            "question_id": [
                each.get("question_id", trace_id) for each, trace_id in zip(labels, traced["trace_id"], strict=True)
            ],
            "decision_timeout_s": timeout_s,
            "horizon_s": float(traced["observed_until_s"].max()),
            "deadline_propagation": named.rule.propagates,
            "retries": "own",
            "latency_profile": "recorded",
            "adoption": 0.0,
            "fault": [each.get("fault", "none") for each in labels],
            "stops_on_disconnect": behaviour == "stops",
            "server_behaviour": behaviour,
            "clock": "trace",
            "second_budgets": "none",
            "returned_at_s": outcomes.returned_at_s[:, 0],
            "quiescent_at_s": outcomes.work_until_s[:, 0],
            "work_censored": outcomes.censored[:, 0],
            "work_overrun_s": np.maximum(0.0, outcomes.work_until_s[:, 0] - timeout_s),
            "answered_in_time": outcomes.in_time[:, 0],
            "stop_reason": [stopped.get(each, "horizon" if each == "unfinished" else "") for each in ended["outcome"]],
        }
    )
    return pd.DataFrame(columns, index=range(n))[outcomes.known[:, 0]]
