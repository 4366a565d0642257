"""One crowd, in whatever process it is sent to: the system is built once there and kept for the crowds that follow."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import pandas as pd

from docmind_lab.batch import Simulated
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


@dataclass(frozen=True)
class LoadCellResult:
    """The tables of one crowd. cpu_s: CPU seconds that it took, without the making of the system."""

    cell_id: str
    queries: pd.DataFrame
    servings: pd.DataFrame
    cpu_s: float = 0.0


def run_load_cell(cell: LoadCell) -> LoadCellResult:
    """The crowd's tables. Raises: what a run raises; SimulationStalled, after which the process is of no more use."""
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
    kept = run_crowd(point.queries, system.workload, door, keep=rows, callers=cell.callers)
    queries, servings = frames_of(kept)
    return LoadCellResult(point.id, queries, servings, time.process_time() - begun_s)


@functools.lru_cache(maxsize=2)
def _system(corpus: str | LibraryPlace, settings: Settings, client_retries: int | None) -> SimulatedSystem:
    return SimulatedSystem(settings, client_retries=client_retries, corpus=corpus, max_connections=_CONNECTIONS)
