"""Every alternative on every workload, on both clocks: caller overrun, work overrun, and what the caller kept.

Each is run at the workload's own defaults, so that the budget falls among the run times. Where an alternative breaks a
guarantee of a workload, such as a write for every chunk, callers are left with nothing; docs/systems.md explains why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from benchmarks.figures import Figure
from benchmarks.pairs import DifferentWork
from docmind_lab.core.alternative_catalogue import label_of
from docmind_lab.core.clock import CLOCKS, ClockName
from docmind_lab.experiments.comparison import compare
from docmind_lab.experiments.world_options import World
from docmind_lab.systems.system_catalogue import system_of_kind
from docmind_lab.systems.workload_by_name import WORKLOADS

# On the wall clock a run takes up to five budgets of real time.
RUNS: Mapping[ClockName, int] = {"virtual": 12, "wall": 4}
# Those that cut calls, or stop waiting, return within the machine's own delays.
PROMPT = ("cooperative", "hard_timeout", "async_cancellation", "native")
MEDIAN_MS = 50.0


def run(runs: Mapping[ClockName, int] = RUNS, workloads: tuple[str, ...] = WORKLOADS) -> Iterator[Figure]:
    """Four figures for each workload, clock and alternative; promptness has a target where it is promised."""
    for workload in workloads:
        for clock in CLOCKS:
            study = compare(system_of_kind(workload), world=World(clock=clock), runs=runs[clock])
            if study.runs.groupby("alternative", observed=True)["seed"].agg(frozenset).nunique() != 1:
                raise DifferentWork(f"{workload} on the {clock} clock: the alternatives were not asked the same")
            for name, group in study.runs.groupby("alternative", observed=True, sort=False):
                yield from _of(f"{workload}, {clock}: {' '.join(label_of(str(name)).split())}", str(name), group)


def _of(what: str, name: str, runs: pd.DataFrame) -> Iterator[Figure]:
    late_ms = float(runs["caller_overrun_s"].fillna(runs["horizon_s"] - runs["decision_timeout_s"]).median()) * 1000
    yield Figure(f"{what}, caller overrun", late_ms, "ms", at_most=MEDIAN_MS if name in PROMPT else None)
    yield Figure(f"{what}, work overrun", float(runs["work_overrun_s"].median()), "s")
    yield Figure(f"{what}, kept", 100 * float(runs["source_recall"].mean()), "% of the gold")
    yield Figure(f"{what}, left with nothing", 100 * float((runs["documents_count"] == 0).mean()), "% of the callers")
