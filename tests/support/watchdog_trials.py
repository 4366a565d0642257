"""How often the limits of a watchdog keep their promise on calls that they were not made with.

    python tests/support/watchdog_trials.py        # the table of docs/limits.md: 200 repetitions of each kind

A repetition makes limits of some calls, and counts the healthy ones that they kill among as many others: drawn anew, or
the other half of public measurements (`tests/calibration/public_calls.parquet`, data/README.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from advice_trials import HEADER, POOLS, Advice, Calibration
from made_up_calls import drawn_study, study_of_calls

import docmind_lab as dl
from docmind_lab.core.randomness import DrawKey

Draw = Callable[[np.random.Generator], tuple[Any, Any]]
"""Draws the calls that limits are made of, and as many others."""


def promise(name: str, draw: Draw, false_kills: float = 0.01) -> Callable[[], Advice]:
    """Limits made of some calls kill at most what they promise of the others."""

    def advice() -> Advice:
        rng = np.random.default_rng(40)

        def trial(_: int) -> bool | None:
            learned, others = draw(rng)
            dog = dl.watchdog(learned, false_kills)
            return dog.killed(others).estimate <= false_kills + 1e-12 if dog.is_known else None

        return Advice(name, f"at most {false_kills:.0%} of healthy calls killed", 0.95, trial)

    return advice


def of_profile(name: str, runs: int = 300, per_run: int = 4) -> Draw:
    """Calls of a built-in profile, with answers of 20 to 200 tokens."""
    profile = dl.LatencyProfile.named(name)

    def study(rng: np.random.Generator) -> Any:
        first, total, seeds = [], [], np.repeat(rng.integers(1 << 40, size=runs), per_run)
        for place, seed in enumerate(seeds):
            latency = profile.draw_llm(DrawKey(int(seed), "writer", str(place)))
            first.append(latency.first_token_s)
            total.append(latency.service_s(int(rng.integers(20, 201))))
        return study_of_calls(total, first, seed=seeds)

    return lambda rng: (study(rng), study(rng))


def made_up(runs: int, per_run: int, cut_s: float = np.inf, **options: float) -> Draw:
    """Streamed calls of runs. cut_s: mean seconds after which a call may be cut, whatever it does."""

    def cut(study: Any, rng: np.random.Generator) -> Any:
        calls = study.calls
        limit_s = rng.exponential(cut_s, size=len(calls)) if np.isfinite(cut_s) else np.inf
        is_cut = calls["latency_s"] > limit_s
        study.calls = calls.assign(
            latency_s=np.minimum(calls["latency_s"], limit_s), outcome=np.where(is_cut, "cancelled", "ok")
        )
        return study

    return lambda rng: (
        cut(drawn_study(runs, per_run, rng, **options), rng),
        drawn_study(runs, per_run, rng, **options),
    )


def halves(source: str) -> Draw:
    """The calls of half of the sessions of a public measurement, and those of the other half."""
    calls = _public()[lambda frame: frame["source"] == source]

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        units = rng.permutation(calls["unit"].unique())
        parts = np.array_split(units, 2)
        first, second = (calls[calls["unit"].isin(part)] for part in parts)
        return _study(first), _study(second)

    return draw


@functools.cache
def _public() -> pd.DataFrame:
    return pd.read_parquet(POOLS / "public_calls.parquet")


def _study(calls: pd.DataFrame) -> Any:
    return study_of_calls(calls["total_s"], calls["first_token_s"], seed=calls["unit"])


KINDS = {
    "independent": promise("independent calls, three limits", made_up(1000, 2)),
    "shared": promise("calls of a run slow together (correlation 0.5)", made_up(300, 8, shared=0.5)),
    "twins": promise("five calls of a run nearly alike", made_up(1000, 5, shared=0.9999)),
    "bad runs": promise("one run in fifty slow as a whole, 300 runs", made_up(300, 8, bad=0.02)),
    "more bad runs": promise("the same, 1,000 runs", made_up(1000, 8, bad=0.02)),
    "cut": promise("one call in eight cut before its end", made_up(1000, 2, cut_s=40.0)),
    "heavy_tail": promise("draws of `heavy_tail`", of_profile("heavy_tail")),
    "heavy_tail, shared": promise("draws of `heavy_tail?correlation=0.5`", of_profile("heavy_tail?correlation=0.5")),
    "typical": promise("draws of `typical`", of_profile("typical")),
    "fast": promise("draws of `fast`", of_profile("fast")),
    "coding, drawn": promise(
        "draws of `coding_2026?correlation=0.19`", of_profile("coding_2026?correlation=0.19", 500)
    ),
    "coding": promise("halves of 365 sessions, 2026", halves("coding_2026")),
    "groq": promise("halves of `groq_70b`, 2023", halves("groq_70b"), 0.2),
    "fireworks": promise("halves of `fireworks_70b`, 2023", halves("fireworks_70b"), 0.2),
    "replicate": promise("halves of `replicate_70b`, 2023", halves("replicate_70b"), 0.2),
    "anyscale": promise("halves of `anyscale_7b`, 2023", halves("anyscale_7b"), 0.2),
}
"""Kinds of calls, with the promise about them."""

if __name__ == "__main__":
    print(HEADER)
    for kind in KINDS.values():
        print(Calibration.over(200, kind()).row(), flush=True)
