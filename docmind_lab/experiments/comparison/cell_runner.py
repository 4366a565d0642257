"""The one way in which cells of runs are carried out: of a comparison or a study, in virtual time or on the wall clock.

    bench = bench_of(comparison, settings)
    for result in run_benches([bench], MachineUse()):
        result.measured                     # the runs of a cell, as it is done

A comparison is one bench. A study has one for each set of services that its combinations need.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loky.backend.reduction import dumps

from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import (
    Cell,
    CellResult,
    InThisProcess,
    Simulated,
    Workers,
    compute_cells,
    run_cell,
    workers_for,
)
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.experiments.comparison.comparison import Comparison, require_propagation, simulated
from docmind_lab.experiments.comparison.replays import replaying
from docmind_lab.experiments.comparison.wall import asks_live_endpoints, runs_on_the_wall_clock
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import require_simulated
from docmind_lab.network.taps import Tap
from docmind_lab.tables.manifest import MachineUse

# A table fills from its first second on when little is computed at a time. On the wall clock a run is done by itself.
_VIRTUAL_RUNS_PER_CELL, _WALL_RUNS_PER_CELL = 5, 1


@dataclass(frozen=True)
class Bench:
    """Cells of runs that need the same services. comparison: one of those whose runs they are; all share its clock."""

    comparison: Comparison
    system: Simulated
    cells: tuple[Cell, ...]

    @property
    def is_virtual(self) -> bool:
        """Whether its runs are in virtual time."""
        return self.comparison.clock == "virtual"

    @property
    def orders(self) -> list[RunOrder]:
        """Its runs, cell by cell."""
        return [order for cell in self.cells for order in cell.orders]


def system_for(comparison: Comparison, settings: Settings, replay: Path | None = None) -> Simulated:
    """Return what is needed to compute runs of a comparison. replay: the folder of the recording that answers.

    Raises: ConfigurationError for live endpoints in virtual time, and as `require_propagation`.
    """
    require_propagation(comparison.alternatives, settings)
    if comparison.clock == "virtual":
        require_simulated(settings)
    system = simulated(comparison, settings)
    return system if replay is None else replaying(system, replay)


def bench_of(comparison: Comparison, settings: Settings, replay: Path | None = None) -> Bench:
    """Return the bench of a comparison. Raises: as `system_for`."""
    system = system_for(comparison, settings, replay)
    orders = comparison.orders(has_server_log=not asks_live_endpoints(comparison, settings))
    runs_per_cell = _VIRTUAL_RUNS_PER_CELL if comparison.clock == "virtual" else _WALL_RUNS_PER_CELL
    return Bench(comparison, system, tuple(cells_of(orders, system, runs_per_cell)))


def run_benches(
    benches: Sequence[Bench], use: MachineUse, *, workers: int | None = None, taps: Sequence[Tap] = ()
) -> Generator[CellResult[MeasuredRun]]:
    """Yield the result of each cell as it is done.

    use: counts the CPU time of the runs. workers: processes in virtual time; None for one on each core, and none at all
    for a few runs, or for what no other process can be sent. taps: told of every request on the wall clock; a cell with
    a run that one of them ends does not come back.
    Raises: ConfigurationError for a number of workers below 1; on the wall clock what a run raises. In virtual time a
    cell that was lost comes back with its error.
    """
    virtual = [bench for bench in benches if bench.is_virtual]
    if virtual:
        # In one stream, so that no worker waits at the end of a bench for the others.
        cells = [cell for bench in virtual for cell in bench.cells]
        with (
            _workers_for(virtual, workers) as crew,
            contextlib.closing(compute_cells(cells, run_cell, crew)) as results,
        ):
            for result in results:
                if result.cpu_s:
                    use.add_workers(result.cpu_s)
                yield result
    for bench in benches:
        if not bench.is_virtual:
            # Of several, what is built between them counts too.
            yield from _on_the_wall_clock(bench, use if len(benches) == 1 else None, taps)


def _workers_for(benches: Sequence[Bench], count: int | None) -> Workers:
    if any(map(stays_in_this_process, {bench.comparison.workload: bench.comparison for bench in benches}.values())):
        return Workers(InThisProcess)
    return workers_for(sum(len(bench.orders) for bench in benches), count)


def stays_in_this_process(comparison: Comparison) -> bool:
    """Return whether no worker process finds the graph, or can be sent its inputs: a context may hold anything."""
    if comparison.kind.in_this_process or not comparison.kind.parts:
        return comparison.kind.in_this_process
    try:
        dumps({order.question.id: order.question for order in comparison.orders()})
    except Exception:  # noqa: BLE001 - whatever an object of the user's raises
        return True
    return False


def _on_the_wall_clock(bench: Bench, use: MachineUse | None, taps: Iterable[Tap]) -> Generator[CellResult[MeasuredRun]]:
    """Yield each cell when the last of its runs has ended; they end in any order."""
    cell_of = {order.facts.run_id: cell for cell in bench.cells for order in cell.orders}
    ended: defaultdict[str, list[MeasuredRun]] = defaultdict(list)
    arriving = runs_on_the_wall_clock(bench.comparison, bench.system.settings, bench.orders, taps=taps, use=use)
    with contextlib.closing(arriving) as runs:
        for measured in runs:
            cell = cell_of[measured.run.run_id]
            ended[cell.id].append(measured)
            if len(ended[cell.id]) == len(cell.orders):
                yield CellResult(cell.id, tuple(ended.pop(cell.id)))
