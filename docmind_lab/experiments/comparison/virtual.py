"""A comparison in virtual time: cells of runs over warm processes, the same tables whoever computes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from pathlib import Path

from loky.backend.reduction import dumps

from docmind_lab.core.errors import ConfigurationError, SimulationStalled
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import InThisProcess, Simulated, Workers, run_cells, workers_for
from docmind_lab.experiments.batch.cells import cells_of
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.recordings.replay import replay_options
from docmind_lab.services.server import ServiceOptions
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.manifest import MachineUse

# A table fills from its first second on when little is computed at a time.
_RUNS_PER_CELL = 5


def runs_in_virtual_time(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    keep_in: Path | None = None,
    replay: Path | None = None,
    use: MachineUse | None = None,
) -> Generator[Sequence[MeasuredRun]]:
    """The runs, a cell at a time, as they are done.

    workers: processes; None for one on each core, and none at all for a few runs, or for what no other process can be
    sent. keep_in: a folder for the finished cells, so that a killed process loses no more than those under way. replay:
    the folder of the recording that the services answer from. use: counts the CPU time of the runs.
    Raises: ConfigurationError for live endpoints; SimulationStalled naming a run that left virtual time.
    """
    require_simulated(settings)
    system = replaying(simulated(comparison, settings), replay)
    store = None if keep_in is None else CellStore(keep_in)
    alone = stays_in_this_process(comparison)
    with Workers(InThisProcess) if alone else workers_for(comparison.total_runs, workers) as crew:
        for result in run_cells(cells_of(comparison.orders(), system, _RUNS_PER_CELL), crew):
            if isinstance(result.error, SimulationStalled):
                raise SimulationStalled(
                    f"{result.error}; the wall clock has no such limit: clock='wall'"
                ) from result.error
            if result.error is not None:
                raise result.error
            if store is not None:
                store.write(result.cell_id, result.measured)
            if use is not None:
                use.add_workers(result.cpu_s)
            yield result.measured


def stays_in_this_process(comparison: Comparison) -> bool:
    """Return whether no worker process finds the graph, or can be sent its inputs: a context may hold anything."""
    if comparison.kind.in_this_process or not comparison.kind.parts:
        return comparison.kind.in_this_process
    try:
        dumps({order.question.id: order.question for order in comparison.orders()})
    except Exception:  # noqa: BLE001 - whatever an object of the user's raises
        return True
    return False


def simulated(comparison: Comparison, settings: Settings) -> Simulated:
    """What a worker needs to compute runs of the comparison."""
    options = ServiceOptions(
        profile=comparison.profile,
        faults=comparison.faults,
        stops_on_disconnect=comparison.stops_on_disconnect,
        behaviour=comparison.server_behaviour,
        seed=comparison.seed,
        cpu_charge=comparison.cpu_charge,
        model_variation=comparison.model_variation,
        model_under_pressure=comparison.model_under_pressure,
        adoption=comparison.adoption,
        endpoints=comparison.kind.endpoints,
    )
    return Simulated(
        settings,
        options,
        client_retries=comparison.client_retries,
        corpus=comparison.documents.corpus,
        node_mode=comparison.node_mode,
        workload=comparison.workload,
    )


def replaying(system: Simulated, replay: Path | None) -> Simulated:
    """The system over services that answer from the recording in the folder; the same one for None."""
    if replay is None:
        return system
    options = replay_options(system.options, str(replay.resolve()), system.settings.llm.model)
    return dataclasses.replace(system, options=options)


def require_simulated(settings: Settings) -> None:
    """Return if the settings name no live endpoint. Raises: ConfigurationError naming the one they do."""
    if name := live_endpoint_of(settings):
        raise ConfigurationError(
            f"{name}: a live endpoint answers in real time, which a simulation cannot wait for; use the wall clock "
            "(--clock wall), or leave the setting out"
        )
