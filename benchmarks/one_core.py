"""What one core does for a run in virtual time: its threads kept on it, over the same run wherever they are put.

Both arms measure the same questions under the same alternatives in this process, in turn; CPU of all threads.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import Figure, sampled
from benchmarks.pairs import pair_ratios
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.comparison import Comparison, simulated
from docmind_lab.experiments.comparison.documents import Documents
from docmind_lab.experiments.measurement.measured_run import RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.virtual_time import one_core
from docmind_lab.virtual_time import virtual_clock as clock

# Above it keeping threads together would do harm, and should go.
TARGET = 1.0
QUESTIONS, REPEATS = 4, 4


class _Anywhere(one_core.OneCore):
    """Leaves the threads to the system."""

    def __enter__(self) -> _Anywhere:
        return self


def run(questions: int = QUESTIONS, repeats: int = REPEATS) -> Iterator[Figure]:
    """The ratio, over pairs of runs of the same question under the same alternative."""
    comparison = Comparison(20.0, questions, documents=Documents("handbook"))
    chosen = simulated(comparison, Settings())
    system = SimulatedSystem(Settings(), corpus="handbook")
    try:
        measured = functools.partial(_measured, system, chosen.options)
        pairs = [
            (functools.partial(measured, order, one_core.OneCore), functools.partial(measured, order, _Anywhere))
            for order in comparison.orders()
        ]
        what = f"a run's threads on one core / on any of {os.cpu_count()}"
        yield sampled(what, pair_ratios(pairs, repeats), at_most=TARGET)
    finally:
        system.close()


def _measured(system: SimulatedSystem, options: Any, order: RunOrder, kind: type[one_core.OneCore]) -> Any:
    with _in_place_of(kind):
        return repr(system.measure(order, options).run)


@contextlib.contextmanager
def _in_place_of(kind: type[one_core.OneCore]) -> Iterator[None]:
    before, clock.OneCore = clock.OneCore, kind
    try:
        yield
    finally:
        clock.OneCore = before
