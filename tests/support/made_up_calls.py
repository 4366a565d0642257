"""Studies of model calls whose durations are drawn or written down, for limits of calls."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

HORIZON_S = 100.0


def study_of_calls(
    total_s: Any,
    first_token_s: Any = math.nan,
    idle_s: Any = math.nan,
    *,
    seed: Any = None,
    role: Any = "writer",
    outcome: Any = "ok",
    fault: Any = "none",
) -> Any:
    """A study with one model call for each of these durations, of a run and seed of its own if none is given.

    fault: of each run.
    """
    total = np.asarray(total_s, dtype="float64")
    seeds = np.arange(len(total)) if seed is None else np.asarray(seed)
    calls = pd.DataFrame(
        {
            "run_id": [f"run-{each}" for each in seeds],
            "call_id": [f"llm/{place}" for place in range(len(total))],
            "attempt": 1,
            "seen_from": "client",
            "kind": "llm",
            "role": role,
            "outcome": outcome,
            "started_at_s": 2.0,
            "latency_s": total,
            "first_token_at_s": 2.0 + np.asarray(first_token_s, dtype="float64"),
            "longest_gap_s": idle_s,
        }
    )
    known = np.unique(seeds)
    runs = pd.DataFrame({"run_id": [f"run-{each}" for each in known], "seed": known})
    return SimpleNamespace(calls=calls, runs=runs.assign(fault=fault, horizon_s=HORIZON_S), events=pd.DataFrame())


def drawn_study(runs: int, per_run: int, rng: np.random.Generator, *, shared: float = 0.0, bad: float = 0.0) -> Any:
    """A study of streamed calls. shared: correlation of the calls of a run. bad: share of runs with slow calls only."""
    count, seed = runs * per_run, np.repeat(np.arange(runs), per_run)

    def scores() -> Any:
        return math.sqrt(shared) * rng.normal(size=runs)[seed] + math.sqrt(1 - shared) * rng.normal(size=count)

    slowness = scores() + 3.0 * (rng.random(runs) < bad)[seed]
    first_s, gap_s = np.exp(0.5 * slowness), np.exp(0.6 * scores() - 1.5)
    return study_of_calls(first_s + gap_s + np.exp(1 + 0.4 * slowness), first_s, gap_s, seed=seed)
