"""What a replay answers, as rows: what an alternative leaves behind, and the runs at one decision timeout."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.findings.what_if.outcomes import ENDINGS, RunOutcomes
from docmind_lab.statistics.interval import Floats
from docmind_lab.tables.frames import blank_row
from docmind_lab.tables.records import TABLES
from docmind_lab.tables.traces.rules import NamedRule
from docmind_lab.tables.traces.trace_tables import CALL_KINDS, Traces


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
