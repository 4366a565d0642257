"""One crowd, in whatever process it is sent to: the system is built once there and kept for the crowds that follow."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field

import pandas as pd

from docmind_lab.batch import Simulated
from docmind_lab.errors import SimulationStalled
from docmind_lab.libraries import LibraryPlace
from docmind_lab.settings import Settings
from docmind_lab.simulation import SimulatedSystem
from docmind_lab.studies.load.crowd import Attended, run_crowd
from docmind_lab.studies.load.design import LoadPoint
from docmind_lab.studies.load.tables import QueryRows, frames_of, rows_of_query

# The queue under study is the provider's. A pool that ran out of connections would be a second one in front of it. The
# openai client's own default, which is made for many conversations at once, is 1,000.
_CONNECTIONS = 1_000


@dataclass(frozen=True)
class LoadCell:
    """A crowd and what it meets: everything a worker needs."""

    point: LoadPoint
    system: Simulated
    callers: int | None = None

    @property
    def id(self) -> str:
        """That of the crowd."""
        return self.point.id


@dataclass(frozen=True)
class LoadCellResult:
    """The tables of one crowd. cpu_s: CPU seconds that it took, without the making of the system.

    stalled: what kept the crowd from going on; its worker cannot be used again then. error: why there are no tables, of
    a crowd that was lost twice.
    """

    cell_id: str
    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    servings: pd.DataFrame = field(default_factory=pd.DataFrame)
    cpu_s: float = 0.0
    stalled: str = ""
    error: Exception | None = None


def run_load_cell(cell: LoadCell, attempt: int = 1) -> LoadCellResult:
    """The crowd's tables; a crowd that left virtual time has none, and its process is of no more use.

    attempt: counts, for executors that take the same call for the same result. Raises: what a run raises.
    """
    point, simulated = cell.point, cell.system
    system = _system(simulated.corpus, simulated.settings, simulated.client_retries)

    def rows(attended: Attended) -> QueryRows:
        return rows_of_query(
            attended,
            arrivals=point.arrivals.kind,
            offered_per_s=point.arrivals.rate_per_s,
            slots=simulated.options.profile.slots,
            callers=cell.callers,
            replicate=point.replicate,
            window_from_s=point.window_from_s,
            window_until_s=point.window_until_s,
        )

    door = system.door(simulated.options)
    begun_s = time.process_time()
    try:
        kept = run_crowd(point.queries, system.workload, door, keep=rows, callers=cell.callers)
    except SimulationStalled as error:
        return LoadCellResult(point.id, stalled=f"of crowd {point.id}: {error}")
    queries, servings = frames_of(kept)
    return LoadCellResult(point.id, queries, servings, time.process_time() - begun_s)


@functools.lru_cache(maxsize=2)
def _system(corpus: str | LibraryPlace, settings: Settings, client_retries: int | None) -> SimulatedSystem:
    return SimulatedSystem(settings, client_retries=client_retries, corpus=corpus, max_connections=_CONNECTIONS)
