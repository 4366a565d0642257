"""Whether B collapses above capacity over real sockets too: 3,840 queries at A and B, on the wall clock.

The provider is that of `load`: latencies of `local_gpu`, unscaled, four slots, a decision timeout of 20 s. Each crowd
has a model server in a process of its own, whose slots all of its queries share. Eight crowds go on beside each other,
A and B of a replicate at the same time, so that both meet the same machine. It takes 20 minutes. The queries together
need about one core: on a machine with other work they are answered later, and the last figures say how busy it was.
`run(replace(FULL, clock="virtual", workers=None))` has the same arrivals and draws in virtual time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.load import DECISION_TIMEOUT_S, SLOTS, capacity_alone_per_s, figures, said
from docmind_lab.core.clock import ClockName
from docmind_lab.experiments.load import LoadStudy, run_load

ALTERNATIVES = "A,B"


@dataclass(frozen=True)
class Scale:
    """How much is run, and on which clock.

    warm_up_s: None for the horizon. workers: crowds beside each other; None for what `run_load` does.
    """

    queries: int = 120
    replicates: int = 8
    queries_alone: int = 24
    shares: tuple[float, ...] = (0.9, 1.1)
    profile: str = "local_gpu"
    decision_timeout_s: float = DECISION_TIMEOUT_S
    warm_up_s: float | None = None
    workers: int | None = 8
    clock: ClockName = "wall"


FULL = Scale()
QUICK = Scale(
    queries=24,
    replicates=1,
    queries_alone=3,
    shares=(1.4,),
    profile="local_gpu/4",
    decision_timeout_s=DECISION_TIMEOUT_S / 4,
    warm_up_s=0.0,
    workers=None,
)


def run(scale: Scale = FULL, out: Path | None = None) -> Iterator[Figure]:
    """Goodput of A and B at each load, the replicates that collapsed, what was abandoned, and how late queries began.

    out: a folder for the study.
    """
    capacity_per_s = capacity_alone_per_s(
        scale.queries_alone, profile=scale.profile, decision_timeout_s=scale.decision_timeout_s
    )
    yield Figure("capacity, from the slot seconds of queries alone in virtual time", 60 * capacity_per_s, "queries/min")
    study = run_load(
        [round(share * capacity_per_s, 3) for share in scale.shares],
        alternatives=ALTERNATIVES,
        queries=scale.queries,
        replicates=scale.replicates,
        slots=SLOTS,
        profile=scale.profile,
        decision_timeout_s=scale.decision_timeout_s,
        warm_up_s=scale.warm_up_s,
        clock=scale.clock,
        workers=scale.workers,
        out=out,
        progress=said,
    )
    yield from figures(study, capacity_per_s)
    yield from machine_figures(study)


def machine_figures(study: LoadStudy) -> Iterator[Figure]:
    """How late queries began, what they cost in CPU time, and how busy the machine was."""
    use = study.manifest["machine_use"]
    yield Figure("queries", len(study.queries), "queries")
    yield Figure("began late, median", 1000 * float(study.queries["late_s"].median()), "ms")
    yield Figure("began late, 99th percentile", 1000 * float(study.queries["late_s"].quantile(0.99)), "ms")
    yield Figure("began late, at most", 1000 * float(study.queries["late_s"].max()), "ms")
    yield Figure("CPU time of a query, its services left out", 1000 * use["cpu_s_per_run"], "ms")
    for when, load in zip(("begin", "end"), use["load_per_core"], strict=True):
        if load is not None:
            yield Figure(f"load average per core at the {when}, of {os.cpu_count()} cores", load, "")
