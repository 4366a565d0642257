"""A cell: a group of runs that one worker computes, that is stored as one file, and repeated as a whole if lost."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from docmind_lab.core.settings import Settings
from docmind_lab.docmind.documents import LibraryPlace
from docmind_lab.docmind.graphs.node_modes import NodeMode
from docmind_lab.docmind.retrieval.corpus import HANDBOOK
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder
from docmind_lab.services.server import ServiceOptions

# Small enough that little is lost with one and that a stop is quick, large enough that its file costs nothing beside.
RUNS_PER_CELL = 10


@dataclass(frozen=True)
class Simulated:
    """The system and the services of a cell's runs: everything a worker needs to build them.

    client_retries: of the openai client, for alternatives that leave retries to it; None for its default. corpus: the
    handbook by its name, or the place of the user's documents. node_mode: of model calls and tools, see
    `graphs/node_modes.py`. workload: its kind, as `workload_kind` takes it.
    """

    settings: Settings
    options: ServiceOptions
    client_retries: int | None = None
    corpus: str | LibraryPlace = HANDBOOK
    node_mode: NodeMode = "own"
    workload: str = "supervisor"

    @property
    def of_process(self) -> tuple[str, str | LibraryPlace, Settings, int | None]:
        """The values that a process builds its system from; building is slow, so workers cache it by them."""
        return self.workload, self.corpus, self.settings, self.client_retries


@dataclass(frozen=True)
class Cell:
    """Runs that one worker computes and one file holds. id: names the file, unique in a study. orders: the runs."""

    id: str
    orders: tuple[RunOrder, ...]
    system: Simulated


@dataclass(frozen=True)
class CellResult:
    """The outcome of one cell: its measured runs, or why there are none.

    stalled: what kept a run from going on; its worker cannot be used again then. error: why there is nothing, of a
    cell that was lost twice. cpu_s: CPU seconds that its process took for the runs.
    """

    cell_id: str
    measured: tuple[MeasuredRun, ...] = ()
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
