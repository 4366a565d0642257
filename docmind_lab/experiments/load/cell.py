"""Compute one crowd in a worker process, which builds the system once and keeps it for the crowds that follow."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pandas as pd

from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import SimulationStalled
from docmind_lab.experiments.batch.cells import CellOutcome, Simulated
from docmind_lab.experiments.comparison.wall import warm_up
from docmind_lab.experiments.load.crowd import QueryResult, run_crowd, run_crowd_on_the_wall
from docmind_lab.experiments.load.design import LoadPoint
from docmind_lab.experiments.load.tables import QueryRows, frames_of, rows_of_query
from docmind_lab.services.server import LogClient, ServiceProcess
from docmind_lab.workloads import Surroundings, workload_kind

# The queue under study is the provider's. A pool that ran out of connections would be a second one in front of it. The
# openai client's own default, which is made for many conversations at once, is 1,000.
_CONNECTIONS = 1_000


@dataclass(frozen=True)
class LoadCell:
    """A crowd of queries and the system that it meets: everything a worker needs.

    callers: queries that the system takes at once; None for no limit. clock: on the wall clock, the crowd has a model
    server of its own, which all of its queries share.
    """

    point: LoadPoint
    system: Simulated
    callers: int | None = None
    clock: ClockName = "virtual"

    @property
    def id(self) -> str:
        """Id of the crowd."""
        return self.point.id


@dataclass(frozen=True)
class LoadCellResult(CellOutcome):
    """The tables of one crowd."""

    queries: pd.DataFrame = field(default_factory=pd.DataFrame)
    servings: pd.DataFrame = field(default_factory=pd.DataFrame)


def run_load_cell(cell: LoadCell, attempt: int = 1) -> LoadCellResult:
    """Run a crowd and return its tables; a crowd that left virtual time has none, and spoils its process.

    attempt: counts, for executors that take the same call for the same result. Raises: what a run raises.
    """
    point, simulated = cell.point, cell.system

    def rows(attended: QueryResult) -> QueryRows:
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

    try:
        kept, cpu_s = (_over_sockets if cell.clock == "wall" else _in_virtual_time)(cell, rows)
    except SimulationStalled as error:
        return LoadCellResult(point.id, stalled=f"of crowd {point.id}: {error}")
    queries, servings = frames_of(kept)
    return LoadCellResult(point.id, queries, servings, cpu_s=cpu_s)


def _in_virtual_time(cell: LoadCell, rows: Callable[[QueryResult], QueryRows]) -> tuple[tuple[QueryRows, ...], float]:
    system = _system(cell.system.of_process, _CONNECTIONS)
    door = system.door(cell.system.options)
    begun_s = time.process_time()
    kept = run_crowd(cell.point.queries, system.workload, door, keep=rows, callers=cell.callers)
    return kept, time.process_time() - begun_s


def _over_sockets(cell: LoadCell, rows: Callable[[QueryResult], QueryRows]) -> tuple[tuple[QueryRows, ...], float]:
    """Run the crowd against a model server of its own over sockets, and close the server afterwards.

    The services go first: what still runs then fails at once. A connection closed under a thread that reads from it
    would leave the thread waiting for ever.
    """
    simulated, queries = cell.system, cell.point.queries
    with contextlib.ExitStack() as after_the_services, ServiceProcess(simulated.options) as services:
        log = LogClient(services.addresses.log_url)
        after_the_services.callback(log.close)
        workload = workload_kind("supervisor").build(
            Surroundings(
                services.addresses,
                simulated.settings,
                client_retries=simulated.client_retries,
                max_connections=_CONNECTIONS,
                corpus=simulated.corpus,
            )
        )
        after_the_services.callback(workload.close)
        warm_up(queries[0].order, workload, log)
        begun_s = time.process_time()
        kept = run_crowd_on_the_wall(
            queries, workload, log, keep=rows, end_services=services.kill, callers=cell.callers
        )
        return kept, time.process_time() - begun_s


_system = functools.lru_cache(maxsize=2)(Simulated.build)
