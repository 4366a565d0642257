"""What a sweep costs over its runs, what a second worker is worth, and what common random numbers are.

The same runs are computed three ways in turn, a part of the sweep at a time: in a plain loop, by a sweep with one
worker, which is this process, and by a sweep with two processes. Seconds are real ones, since that is what a person
waits for; what else the machine does in them strikes all three alike. Workers have built their systems before, and
every sweep writes its folder.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from benchmarks.figures import Figure, sampled
from benchmarks.pairs import DifferentWork
from docmind_lab.core.alternative_catalogue import letter_of
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import workers_for
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import benches_of, sweep
from docmind_lab.findings.study import Study
from docmind_lab.statistics.differences import paired_by_seed, values_of
from docmind_lab.systems.base.documents.library import named_corpus
from docmind_lab.tables.conditions import with_arms
from docmind_lab.tables.records import TABLES

# The issue's: 6 alternatives × 8 budgets × 50 seeds are 2,400 runs. Each budget is a part.
ALTERNATIVES = "A,B,C,D,E,F"
TIMEOUTS_S = (2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 60.0)
SEEDS = 50
OVERHEAD_TARGET = 1.1
# 1.8 times as fast.
SECOND_WORKER_TARGET = 1 / 1.8
_CORPUS = "handbook"
# Some tenths of a second.
_COUNT = 10_000_000
# Both arms of the first hold the deadline, so that callers hardly see a difference; those of the second see one.
_COMPARED = (("cooperative", "hard_timeout"), ("cooperative", "stop_flag"))
_COLUMNS = ("returned_at_s", "answered_in_time")


@dataclass(frozen=True)
class _Part:
    """A part of the sweep, the seconds that it took each way, and what two workers were worth to a bare loop then."""

    study: Study
    loop_s: float
    one_worker_s: float
    two_workers_s: float
    bare_ratio: float


def run(timeouts_s: Sequence[float] = TIMEOUTS_S, seeds: int = SEEDS) -> Iterator[Figure]:
    """Ratios of real time over parts of the sweep, and variance factors of differences. seeds: for each budget."""
    with closing(SimulatedSystem(Settings(), corpus=named_corpus(_CORPUS))) as system:
        # Untimed: workers import and build, and the first use of a code path costs what no later one does.
        _measured(_design(timeouts_s[-1], min(seeds, 10)), system)
        parts = [_measured(_design(timeout_s, seeds), system) for timeout_s in timeouts_s]
    yield Figure("runs of the sweep", sum(len(part.study.runs) for part in parts), "runs")
    yield Figure("  in a plain loop", 1000 * sum(part.loop_s for part in parts), "ms")
    overheads = [part.one_worker_s / part.loop_s for part in parts]
    yield sampled("a sweep with one worker / its runs in a plain loop", overheads, at_most=OVERHEAD_TARGET)
    scaling = [part.two_workers_s / part.one_worker_s for part in parts]
    yield sampled("with two workers / with one", scaling, at_most=SECOND_WORKER_TARGET)
    # 0.5 on two idle cores, 1 where others have the second: no sweep can do better than this.
    yield sampled("  the same of a loop that only counts", [part.bare_ratio for part in parts])
    for names in _COMPARED:
        for column in _COLUMNS:
            yield _variance_factor(*names, column, [part.study.runs for part in parts])


def _design(timeout_s: float, seeds: int) -> StudyDesign:
    factors = {"alternative": ALTERNATIVES, "decision_timeout_s": timeout_s}
    return StudyDesign.of({"name": "benchmark", "documents": _CORPUS, "repeats": seeds, "factors": factors})


def _measured(design: StudyDesign, system: SimulatedSystem) -> _Part:
    """The part computed each way. Raises: DifferentWork when the tables are not the same."""
    plain, loop_s = _in_a_loop(design, system)
    by_one, one_worker_s = _swept(design, 1)
    by_two, two_workers_s = _swept(design, 2)
    for other in (by_one, by_two):
        for name in TABLES:
            if not getattr(plain, name).equals(getattr(other, name)):
                raise DifferentWork(f"the {name} of {design.study_id} are not those of its runs in a loop")
    return _Part(plain, loop_s, one_worker_s, two_workers_s, _counting_s(2) / _counting_s(1))


def _counting_s(workers: int) -> float:
    """Seconds for eight loops that only count."""
    began_s = time.perf_counter()
    with workers_for(8, workers) as crew:
        for future in [crew.submit(sum, range(_COUNT)) for _ in range(8)]:
            future.result()
    return time.perf_counter() - began_s


def _in_a_loop(design: StudyDesign, system: SimulatedSystem) -> tuple[Study, float]:
    cells = [cell for bench in benches_of(design, Settings()) for cell in bench.cells]
    began_s = time.perf_counter()
    measured = [system.measure(order, cell.system.options) for cell in cells for order in cell.orders]
    took_s = time.perf_counter() - began_s
    return Study.of(measured, {}), took_s


def _swept(design: StudyDesign, workers: int) -> tuple[Study, float]:
    with tempfile.TemporaryDirectory() as folder:
        began_s = time.perf_counter()
        study = sweep(design, out=Path(folder) / "study", workers=workers, progress=lambda done, total: None)
        took_s = time.perf_counter() - began_s
    assert study.manifest["complete"], study.manifest["failed_cells"]
    return study, took_s


def _variance_factor(first: str, second: str, column: str, parts: Sequence[pd.DataFrame]) -> Figure:
    """By what factor the same seeds in both arms cut the variance of their difference, over all budgets together.

    What an arm has in common under a budget is taken off first: it is no variance between seeds. A budget under which
    nothing varies weighs nothing; where every difference is the same, the factor is infinite. A run that did not return
    counts with its horizon.
    """
    sides: tuple[list[pd.Series[float]], list[pd.Series[float]]] = [], []
    for runs in parts:
        named = with_arms(runs).drop_duplicates("arm").set_index("alternative")["arm"]
        known = runs.assign(returned_at_s=runs["returned_at_s"].fillna(runs["horizon_s"]))
        pairs = paired_by_seed(known, str(named[first]), str(named[second]))
        for side, values in zip(sides, values_of(pairs, column), strict=True):
            measured = pd.Series(values, dtype="float64")
            side.append(measured - measured.mean())
    factor = _variance_ratio(*(pd.concat(side).to_numpy() for side in sides))
    letters = " − ".join(letter_of(name) for name in (first, second))
    return Figure(f"variance of {letters}, {column}: with independent seeds / with common ones", factor)


def _variance_ratio(first: ArrayLike, second: ArrayLike) -> float:
    """By what factor pairing cut the variance of the mean difference: that of unpaired runs / that of the pairs.

    (var(first) + var(second)) / var(first − second), over the same seeds in the same order: 4 means that a quarter of
    the runs tells as much; 1 that pairing was worth nothing; inf that all differences are equal; NaN that no arm
    varies. Source: Law, Simulation Modeling and Analysis (2015), section 11.2, common random numbers.
    """
    arms = [np.asarray(values, dtype="float64") for values in (first, second)]
    apart, together = sum(float(np.var(arm, ddof=1)) for arm in arms), float(np.var(arms[0] - arms[1], ddof=1))
    if together > 0.0:
        return apart / together
    return math.inf if apart > 0.0 else math.nan
