"""How long callers wait past a deadline under a hang and under a trickle every 0.3 s, 20 runs of each alternative.

On the wall clock: in virtual time the code itself takes none, so an overrun there says nothing of what it costs.
A with a timeout for each read, which a trickle defeats, is shown beside the others and has no target.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.pairs import DifferentWork
from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison import Comparison, run_comparison
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.tables.conditions import with_arms

RUNS, TIMEOUT_S = 20, 1.0
MEDIAN_MS, WORST_MS = 50.0, 150.0


def run(runs: int = RUNS) -> Iterator[Figure]:
    """Median and worst caller overrun of each alternative under each fault."""
    for fault in ("hang", "trickle"):
        comparison = Comparison(
            decision_timeout_s=TIMEOUT_S,
            runs=runs,
            alternatives=parse_alternatives("A,A:per_read,B,C"),
            profile=LatencyProfile.named("typical/40"),
            faults=(Fault.parse(fault),),
            # The overrun is all that is asked: a hang is not watched to the usual horizon.
            horizon_factor=2.0 if fault == "hang" else 5.0,
            clock="wall",
        )
        study = run_comparison(comparison, Settings())
        if set(study.runs["clock"]) != {"wall"}:
            raise DifferentWork(f"runs were not on the wall clock: {sorted(set(study.runs['clock']))}")
        for label, runs_of_arm in with_arms(study.runs).groupby("arm", observed=True, sort=False):
            what, has_target = f"{fault}: {label}", "per_read" not in str(label)
            overrun_ms = runs_of_arm["caller_overrun_s"] * 1000
            for statistic, value_ms, limit_ms in (
                ("median", overrun_ms.median(), MEDIAN_MS),
                ("worst", overrun_ms.max(), WORST_MS),
            ):
                yield Figure(f"{what}, {statistic}", float(value_ms), "ms", at_most=limit_ms if has_target else None)
