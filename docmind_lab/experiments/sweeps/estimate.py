"""Estimate the time and disk that a study will take, from a pilot of a few of its runs.

print(estimate(StudyDesign.read("study.toml"), Settings()))
about 4 minutes on 2 cores, 35 MB (from a pilot of 7 runs)
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from loky import cpu_count

from docmind_lab.core.settings import Settings
from docmind_lab.core.text import count_of
from docmind_lab.experiments.batch import Cell, Simulated
from docmind_lab.experiments.measurement.run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.sweeps.design import StudyDesign
from docmind_lab.experiments.sweeps.runner import SweepBench, benches_of
from docmind_lab.tables.cell_store import CellStore

# More would make a pilot a study.
_MOST_RUNS = 12
# Each system takes seconds to build; what two tell of a run's cost holds for others.
_MOST_SYSTEMS = 2
# The end of a run that is cut at its horizon, and the making of the services of a bench.
_AFTER_HORIZON_S, _START_OF_SERVICES_S = 2.0, 5.0


@dataclass(frozen=True)
class Estimate:
    """The time and disk that a study is expected to take.

    seconds: on `cores` that have nothing else to do. bytes: of the finished cells; None where nobody knows. is_bound:
    the seconds are what it takes at the most, by its timeouts and horizons. how: where the numbers come from.
    """

    runs: int
    cells: int
    seconds: float
    bytes: int | None
    cores: int
    is_bound: bool
    how: str

    def __str__(self) -> str:
        time_text = f"{'at most' if self.is_bound else 'about'} {_duration(self.seconds)}"
        on = f" on {count_of(self.cores, 'core')}" if not self.is_bound else ""
        size = "" if self.bytes is None else f", {_size(self.bytes)}"
        return f"{time_text}{on}{size} ({self.how})"


def estimate(design: StudyDesign, settings: Settings, workers: int | None = None) -> Estimate:
    """Estimate time and disk of the study. workers: number of processes; None for one on each core.

    Up to twelve of its runs are really run, in this process and in virtual time, over its arms and budgets; their cell
    is written to a temporary folder to know its size. Takes some seconds. Runs on the wall
    clock wait in real time: for them there is a bound by their horizons, which most studies stay well below.
    Raises: ConfigurationError for settings that cannot be used with the design.
    """
    benches = benches_of(design, settings)
    cells = [cell for bench in benches for cell in bench.cells]
    cores = max(1, workers or cpu_count())
    pilot = _pilot(cells)
    virtual = [cell for bench in benches if bench.comparison.clock == "virtual" for cell in bench.cells]
    seconds = _virtual_s(virtual, pilot, cores) if virtual else 0.0
    is_bound = len(virtual) < len(cells)
    how = f"from a pilot of {count_of(len(pilot.seconds), 'run')}" if pilot.seconds else "without a pilot"
    if is_bound:
        seconds += sum(_bound_s(bench) for bench in benches if bench.comparison.clock == "wall")
        how = f"bounded by the horizons of runs on the wall clock, {how}"
    return Estimate(
        runs=sum(len(cell.orders) for cell in cells),
        cells=len(cells),
        seconds=seconds,
        bytes=pilot.bytes_of(cells) if pilot.seconds else None,
        cores=cores,
        is_bound=is_bound,
        how=how,
    )


@dataclass(frozen=True)
class _Pilot:
    """What a few pilot runs took. seconds: of each run. build_s: seconds to build one system.

    cell_bytes: size of a cell of all these runs, empty_bytes: of an empty one.
    """

    seconds: tuple[tuple[RunOrder, float], ...]
    build_s: float
    cell_bytes: int
    empty_bytes: int

    def run_s(self, order: RunOrder) -> float:
        """Return the expected seconds of a run: the mean of its arm at the nearest budget, else of all runs."""
        ours = [(piloted, took) for piloted, took in self.seconds if _key(piloted) == _key(order)]
        known = ours or list(self.seconds)
        budget_s = order.facts.decision_timeout_s
        away = [abs(math.log(piloted.facts.decision_timeout_s / budget_s)) for piloted, _ in known]
        nearest = [took for (_, took), distance in zip(known, away, strict=True) if distance <= min(away) + 1e-9]
        return sum(nearest) / len(nearest)

    def bytes_of(self, cells: Sequence[Cell]) -> int:
        """Return the expected size of the cells on disk."""
        of_run = (self.cell_bytes - self.empty_bytes) / len(self.seconds)
        return round(sum(self.empty_bytes + of_run * len(cell.orders) for cell in cells))


def _key(order: RunOrder) -> tuple[str, str, str]:
    # A run that is over after its sixth call costs less than one that goes on.
    return order.facts.alternative, order.facts.alternative_options, order.facts.budget.level


def _virtual_s(cells: Sequence[Cell], pilot: _Pilot, cores: int) -> float:
    """Return the wall time of virtual runs: CPU time divided over the cores, each of which builds every system once."""
    systems = len({cell.system.of_process for cell in cells})
    working = min(cores, len(cells))
    return sum(pilot.run_s(order) for cell in cells for order in cell.orders) / working + systems * pilot.build_s


def _bound_s(bench: SweepBench) -> float:
    """Return the most seconds a bench can take: every run to its horizon, side by side as far as allowed."""
    side_by_side = 1 if bench.comparison.node_mode == "blocking" else bench.comparison.side_by_side
    rounds = [
        math.ceil(len(cell.orders) / side_by_side)
        * (max(order.facts.horizon_s for order in cell.orders) + _AFTER_HORIZON_S)
        for cell in bench.cells
    ]
    return sum(rounds) + _START_OF_SERVICES_S


def _pilot(cells: Sequence[Cell]) -> _Pilot:
    """Measure a few pilot runs; none if the settings name live endpoints, which virtual time cannot reach."""
    measured: list[MeasuredRun] = []
    seconds: list[tuple[RunOrder, float]] = []
    build_s: list[float] = []
    for chosen in _choose(cells):
        first, system = chosen[0]
        if live_endpoint_of(system.settings):
            continue
        # CPU time: what others do on this machine meanwhile tells nothing of the runs, which never wait.
        begun = time.process_time()
        with contextlib.closing(system.build()) as built:
            build_s.append(time.process_time() - begun)
            # The first run of a process pays for what every later one finds imported.
            system.measure(built, first)
            for order, its in chosen:
                begun = time.process_time()
                run = its.measure(built, order)
                seconds.append((order, time.process_time() - begun))
                measured.append(run)
    if not seconds:
        return _Pilot((), 0.0, 0, 0)
    return _Pilot(tuple(seconds), sum(build_s) / len(build_s), _cell_bytes(measured), _cell_bytes([]))


def _cell_bytes(measured: Sequence[MeasuredRun]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return CellStore(folder).write("pilot", measured).stat().st_size


def _choose(cells: Sequence[Cell]) -> list[list[tuple[RunOrder, Simulated]]]:
    """Choose the pilot's runs, a list for each system that they need: one of each arm and budget, up to a limit."""
    by_system: dict[Simulated, dict[tuple[object, ...], tuple[RunOrder, Simulated]]] = {}
    for cell in cells:
        of_system = by_system.setdefault(cell.system.of_process, {})
        for order in cell.orders:
            of_system.setdefault((_key(order), order.facts.decision_timeout_s), (order, cell.system))
    systems = list(by_system.values())[:_MOST_SYSTEMS]
    return [list(of_system.values())[: _MOST_RUNS // len(systems)] for of_system in systems]


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def _size(size: int) -> str:
    return (
        f"{max(1, round(size / 1e3))} kB"
        if size < 1e6
        else f"{size / 1e6:.0f} MB"
        if size < 1e9
        else f"{size / 1e9:.1f} GB"
    )
