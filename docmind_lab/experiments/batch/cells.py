"""Cells, each a group of runs that one worker computes and one file holds, and a worker's computing of one."""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final, Generic, TypeVar

from docmind_lab.core.errors import SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import SimulatedSystem
from docmind_lab.services.server import ServiceOptions
from docmind_lab.systems.base.corpus import HANDBOOK
from docmind_lab.systems.base.documents import LibraryPlace
from docmind_lab.systems.base.node_modes import NodeMode

Measured = TypeVar("Measured")

# Small enough that little is lost with one and that a stop is quick, large enough that its file costs nothing beside.
RUNS_PER_CELL = 10
ONE_AT_A_TIME: Final = threading.Lock()
"""Held while a cell is computed: virtual time belongs to a process as a whole."""


@dataclass(frozen=True)
class Simulated:
    """The system and the services of a cell's runs: everything a worker needs to build them.

    client_retries: of the openai client, for alternatives that leave retries to it; None for its default. corpus: the
    handbook by its name, or the place of the user's documents. node_mode: of model calls and tools, see
    `base/node_modes.py`. workload: its kind, as `workload_kind` takes it.
    """

    settings: Settings
    options: ServiceOptions
    client_retries: int | None = None
    corpus: str | LibraryPlace = HANDBOOK
    node_mode: NodeMode = "own"
    workload: str = "supervisor"

    @property
    def of_process(self) -> Simulated:
        """The same without what varies from run to run; building is slow, so workers cache what they build by it."""
        return dataclasses.replace(self, options=ServiceOptions(), node_mode="own")

    def build(self) -> SimulatedSystem:
        """Return the system, newly built, whose owner closes it."""
        return SimulatedSystem(self.settings, self.client_retries, self.corpus, self.workload)

    def built_once(self) -> SimulatedSystem:
        """Return the system, built at its first use in this process."""
        return _built(self.of_process)

    def measure(self, system: SimulatedSystem, order: RunOrder) -> MeasuredRun:
        """Return a run of the system, without what only a caller of a single run needs."""
        return without_state(system.measure(order, self.options, node_mode=self.node_mode))


@dataclass(frozen=True)
class Cell:
    """Runs that one worker computes and one file holds. id: names the file, unique in a study. orders: the runs."""

    id: str
    orders: tuple[RunOrder, ...]
    system: Simulated


@dataclass(frozen=True)
class CellResult(Generic[Measured]):
    """What comes back of a cell, whatever its kind: what was measured in it.

    stalled: what kept a run from going on; its worker cannot be used again then. error: why there is nothing, of a
    cell that was lost twice. cpu_s: CPU seconds that its process took for the runs.
    """

    cell_id: str
    measured: tuple[Measured, ...] = ()
    _: KW_ONLY
    stalled: str = ""
    error: Exception | None = None
    cpu_s: float = 0.0


def cells_of(
    orders: Iterable[RunOrder], system: Simulated, runs_per_cell: int = RUNS_PER_CELL, prefix: str = ""
) -> list[Cell]:
    """Divide the orders into cells, in order, with ids "000", "001", … after the prefix."""
    waiting: Sequence[RunOrder] = list(orders)
    chunks = [waiting[start : start + runs_per_cell] for start in range(0, len(waiting), runs_per_cell)]
    digits = max(3, len(str(len(chunks))))
    return [Cell(f"{prefix}{number:0{digits}}", tuple(chunk), system) for number, chunk in enumerate(chunks)]


def without_state(measured: MeasuredRun) -> MeasuredRun:
    """Return the run without what only a caller of a single run needs, so that it goes from one process to another.

    The state of its graph is large, and its exception is one that anybody may have written, which may not be pickled.
    """
    return dataclasses.replace(measured, outcome=dataclasses.replace(measured.outcome, state={}, error=None))


def run_cell(cell: Cell, attempt: int = 1) -> CellResult[MeasuredRun]:
    """Measure the cell's runs in virtual time, one after the other, and no other cell in this process meanwhile.

    A run that stalls ends the cell: the process then has threads that cannot be ended. attempt: 2 for a cell that was
    lost before.
    """
    with ONE_AT_A_TIME:
        system = cell.system.built_once()
        measured: list[MeasuredRun] = []
        began_s = time.process_time()
        for order in cell.orders:
            try:
                measured.append(cell.system.measure(system, order))
            except SimulationStalled as error:
                return CellResult(cell.id, tuple(measured), stalled=f"{order.facts.run_id}: {error}")
        return CellResult(cell.id, tuple(measured), cpu_s=time.process_time() - began_s)


# Two: a study that compares with and without router injection alternates between them.
_built = functools.lru_cache(maxsize=2)(Simulated.build)
