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
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.sweeps.sweep_run import SweepBench, benches_of
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

    Up to twelve of its runs are really run, in this process and in virtual time, over its arms and budgets, each of
    which has as many runs; their cell is written to a temporary folder to know its size. Takes some seconds. Runs on
    the wall clock wait in real time: for them there is a bound by their horizons, which most studies stay well below.
    Raises: ConfigurationError for settings that cannot be used with the design.
    """
    benches = benches_of(design, settings)
    cells = [cell for bench in benches for cell in bench.cells]
    runs = sum(len(cell.orders) for cell in cells)
    cores = max(1, workers or cpu_count())
    pilot = _pilot(cells)
    virtual = [cell for bench in benches if bench.comparison.clock == "virtual" for cell in bench.cells]
    seconds = 0.0
    if virtual:
        # CPU time is divided over the cores, each of which builds every system once.
        systems = len({cell.system.of_process for cell in virtual})
        of_runs_s = pilot.run_s * sum(len(cell.orders) for cell in virtual)
        seconds = of_runs_s / min(cores, len(virtual)) + systems * pilot.build_s
    is_bound = len(virtual) < len(cells)
    how = f"from a pilot of {count_of(pilot.runs, 'run')}" if pilot.runs else "without a pilot"
    if is_bound:
        seconds += sum(_bound_s(bench) for bench in benches if bench.comparison.clock == "wall")
        how = f"bounded by the horizons of runs on the wall clock, {how}"
    size = round(len(cells) * pilot.empty_bytes + runs * pilot.run_bytes) if pilot.runs else None
    return Estimate(runs, len(cells), seconds, size, cores, is_bound, how)


@dataclass(frozen=True)
class _Pilot:
    """What a few pilot runs took: CPU seconds of a run and of building a system, bytes of a run and an empty cell."""

    runs: int = 0
    run_s: float = 0.0
    build_s: float = 0.0
    run_bytes: float = 0.0
    empty_bytes: int = 0


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
    runs_s, build_s = 0.0, []
    for pilots in _choose(cells):
        first, system = pilots[0]
        if live_endpoint_of(system.settings):
            continue
        # CPU time: what others do on this machine meanwhile tells nothing of the runs, which never wait.
        begun = time.process_time()
        with contextlib.closing(system.build()) as built:
            build_s.append(time.process_time() - begun)
            # The first run of a process pays for what every later one finds imported.
            system.measure(built, first)
            begun = time.process_time()
            measured += [its.measure(built, order) for order, its in pilots]
            runs_s += time.process_time() - begun
    if not measured:
        return _Pilot()
    runs, empty_bytes = len(measured), _cell_bytes([])
    run_bytes = (_cell_bytes(measured) - empty_bytes) / runs
    return _Pilot(runs, runs_s / runs, sum(build_s) / len(build_s), run_bytes, empty_bytes)


def _cell_bytes(measured: Sequence[MeasuredRun]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        return CellStore(folder).write("pilot", measured).stat().st_size


def _choose(cells: Sequence[Cell]) -> list[list[tuple[RunOrder, Simulated]]]:
    """Choose the pilot's runs, a list for each system that they need: one of each arm and budget, up to a limit."""
    by_system: dict[Simulated, dict[tuple[object, ...], tuple[RunOrder, Simulated]]] = {}
    for cell in cells:
        of_system = by_system.setdefault(cell.system.of_process, {})
        for order in cell.orders:
            facts = order.facts
            arm = facts.alternative, facts.alternative_options, facts.budget.level, facts.decision_timeout_s
            of_system.setdefault(arm, (order, cell.system))
    systems = [list(of_system.values()) for of_system in list(by_system.values())[:_MOST_SYSTEMS]]
    most = _MOST_RUNS // len(systems)
    # From all over the study: those at its end may have other budgets than those at its begin.
    return [
        [arms[place * len(arms) // most] for place in range(most)] if len(arms) > most else arms for arms in systems
    ]


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
