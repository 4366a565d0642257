"""Compute one cell in a worker process, which builds the system once and keeps it for the cells that follow."""

from __future__ import annotations

import functools
import threading
import time

from docmind_lab.core.errors import SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.docmind.documents import LibraryPlace
from docmind_lab.experiments.batch.cells import Cell, CellResult, without_state
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import SimulatedSystem

# Virtual time belongs to a process as a whole, and a worker of a cluster may have several threads.
_one_at_a_time = threading.Lock()


def run_cell(cell: Cell, attempt: int = 1) -> CellResult:
    """Measure the cell's runs in virtual time, one after the other, and no other cell in this process meanwhile.

    A run that stalls ends the cell: the process then has threads that cannot be ended. attempt: counts, for executors
    that take the same call for the same result, and would give back the error of the first.
    """
    with _one_at_a_time:
        return _measure_cell(cell)


def _measure_cell(cell: Cell) -> CellResult:
    system = _system(*cell.system.of_process)
    measured: list[MeasuredRun] = []
    begun_s = time.process_time()
    for order in cell.orders:
        try:
            run = system.measure(order, cell.system.options, node_mode=cell.system.node_mode)
            measured.append(without_state(run))
        except SimulationStalled as error:
            return CellResult(cell.id, tuple(measured), f"{order.facts.run_id}: {error}")
    return CellResult(cell.id, tuple(measured), cpu_s=time.process_time() - begun_s)


# Two: a study that compares with and without router injection alternates between them.
@functools.lru_cache(maxsize=2)
def _system(
    workload: str, corpus: str | LibraryPlace, settings: Settings, client_retries: int | None
) -> SimulatedSystem:
    return SimulatedSystem(settings, client_retries=client_retries, corpus=corpus, kind=workload)
