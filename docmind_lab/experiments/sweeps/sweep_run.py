"""Run a study: compute every missing cell, store each as it ends, and build the tables when all are there."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Cell, CellResult, InThisProcess, Simulated, Workers, run_cells, workers_for
from docmind_lab.experiments.batch.cell_run import Progress
from docmind_lab.experiments.batch.cells import RUNS_PER_CELL, cells_of
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.comparison_run import check_settings, notes_on
from docmind_lab.experiments.comparison.replays import without_live_endpoints
from docmind_lab.experiments.comparison.virtual import replaying, require_simulated, simulated, stays_in_this_process
from docmind_lab.experiments.comparison.wall import has_server_log, wall_laboratory
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.system_options import system_of
from docmind_lab.experiments.world_options import AnyWorld, Live, World
from docmind_lab.findings.study import Study
from docmind_lab.findings.study_folder import StudyFolder
from docmind_lab.systems.kinds import systems_said, workload_kind
from docmind_lab.tables.manifest import MachineUse, manifest_of


@dataclass(frozen=True)
class SweepBench:
    """Cells that need the same services. comparison: one of the comparisons in them; they share its clock."""

    comparison: Comparison
    settings: Settings
    cells: tuple[Cell, ...]


def benches_of(design: StudyDesign, settings: Settings) -> list[SweepBench]:
    """Group every run of the study into cells by the services they need, in an order fixed by the design.

    Within a bench the repeats go round the combinations, so that a study that is stopped has some of each; on the wall
    clock the order is drawn, so that a drift of the machine strikes no alternative alone.
    Raises: ConfigurationError for settings that cannot be used with the design.
    """
    if design.replay is not None:
        settings = without_live_endpoints(settings)
    grouped: dict[tuple[str, Simulated], list[tuple[float, RunOrder]]] = {}
    comparisons: dict[tuple[str, Simulated], Comparison] = {}
    for number, combination in enumerate(design.plan.combinations):
        comparison = combination.comparison
        own = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
        check_settings(comparison, own)
        on_the_wall = comparison.clock == "wall"
        if not on_the_wall:
            require_simulated(own)
        services: tuple[str, Simulated] = (comparison.clock, replaying(simulated(comparison, own), design.replay))
        comparisons.setdefault(services, comparison)
        orders = combination.orders(design.study_id, number, has_server_log=not on_the_wall or has_server_log(own))
        grouped.setdefault(services, []).extend(
            (keyed_uniform(design.seed, "order", order.facts.run_id) if on_the_wall else repeat, order)
            for repeat, order in enumerate(orders)
        )
    benches = []
    for number, (services, members) in enumerate(grouped.items()):
        orders = [order for _, order in sorted(members, key=lambda member: member[0])]
        system = services[1]
        cells = cells_of(orders, system, RUNS_PER_CELL, prefix=f"{number:02}-")
        benches.append(SweepBench(comparisons[services], system.settings, tuple(cells)))
    return benches


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[int, int], None]]:
    """Yield a function of (done, all) that draws a progress bar, or nothing outside terminals and notebooks."""
    in_notebook = "ipykernel" in sys.modules
    if not in_notebook and not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from tqdm.auto import tqdm  # noqa: PLC0415 - only for those who see it; imports widgets in a notebook

    bar = tqdm(unit=" runs", total=0, leave=False)

    def show(done: int, total: int) -> None:
        if bar.total != total:
            # What was there before this call says nothing of the rate.
            bar.reset(total=total)
            bar.initial = bar.n = done
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        bar.close()


# How long to wait before looking again for cells that another process has.
_LOOK_S = 0.5


@answers_wrong_names
def sweep(
    system: Any = None,
    factors: Mapping[str, Any] | None = None,
    *,
    world: AnyWorld | None = None,
    runs: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    settings: Settings | None = None,
) -> Study:
    """Run every combination of factors, with repeats.

        dl.sweep(dl.docmind(), {"alternatives": "A,B", "decision_timeout_s": [5, 10, 20]}, runs=20)
        dl.sweep(dl.graph(my_graph, ["…"]), {"decision_timeout_s": [5, 10, 20]})
        study = dl.sweep("study.toml", out="results/timeouts")

    Args:
        system: What is under the deadline, as `compare` takes it. Or a whole design: a TOML file, a `StudyDesign`, or
            what `StudyDesign.of` takes.
        factors: Name → level, or list of levels, as in the `[factors]` of a study file.
        world: What it meets, as `compare` takes it.
        runs: Questions asked in each combination. None means 40.
        seed: Keys the questions, latencies and faults. None means 7.
        out: A folder; each finished cell is kept in it, and the same call goes on where an earlier one ended, however
            it ended. Several processes may work on one folder.
        workers: Processes when there is no executor. None means one on each core, or none for a few runs; 1 means none.
        executor: Computes cells in virtual time: a process pool, `distributed.Client.get_executor()`; its owner ends
            it.
        progress: Called with (runs done, all runs); a progress bar on a terminal or in a notebook when left out.
        settings: Settings; those of the environment when left out.

    The tables do not depend on who computes them, nor in how many attempts. A cell that is lost twice (its worker died
    or stalled, a run raised) is named in `manifest["failed_cells"]`, and the study is not complete; the same call tries
    it again.
    Interrupted, it raises KeyboardInterrupt; what is done is in the folder, and there is none when nothing is.
    Raises: ConfigurationError for a design, settings or folder that cannot be used; RecordError when a cell cannot be
    written: the others are intact.
    """
    checked = _checked_design(system, factors, world, {"repeats": runs, "seed": seed})
    settings = settings or (world.settings if isinstance(world, Live) else None) or Settings()
    benches = benches_of(checked, settings)
    if executor is not None and workers is not None:
        raise ConfigurationError("workers: the executor has workers of its own; leave one of the two out")
    if (executor is not None or workers is not None) and all(bench.comparison.clock == "wall" for bench in benches):
        name = "workers" if executor is None else "executor"
        raise ConfigurationError(f"{name}: only runs in virtual time have worker processes; leave it out")
    crew = _workers(checked, executor, workers)
    folder = None if out is None else StudyFolder(out, checked.study_id, checked.to_dict(), settings)
    if folder is not None and folder.finished():
        return Study.load(folder.path)
    with contextlib.ExitStack() as ending:
        shown = progress or ending.enter_context(progress_bar())
        work = _StudyWork(benches, folder, shown, crew)
        try:
            work.compute()
        except KeyboardInterrupt:
            if folder is not None:
                folder.release_all()
                folder.discard_without_cells()
            raise
        finally:
            if folder is not None:
                folder.release_all()
    manifest = manifest_of(
        checked.to_dict(),
        settings,
        study_id=checked.study_id,
        complete=work.is_complete,
        systems=systems_said(checked.workloads),
    ) | {
        "failed_cells": [
            {"cell": name, "reason": reason} for name, reason in sorted(work.failed.items()) if name not in work.done
        ],
        "left_out": list(checked.plan.left_out),
        "machine_use": work.use.to_dict(work.runs_measured),
    }
    parts = {} if checked.own is None else workload_kind(checked.own.workload).parts
    if folder is None:
        study = Study.of(work.measured, manifest)
        return dataclasses.replace(study, manifest={**manifest, **notes_on(study, parts, checked.replay)})
    return folder.finish(sorted(work.done), manifest, lambda study: notes_on(study, parts, checked.replay))


def _checked_design(
    system: Any, factors: Mapping[str, Any] | None, world: AnyWorld | None, numbers: Mapping[str, int | None]
) -> StudyDesign:
    given = {name: value for name, value in numbers.items() if value is not None}
    is_file = isinstance(system, os.PathLike) or (isinstance(system, str) and system.endswith(".toml"))
    if not (is_file or isinstance(system, StudyDesign | Mapping)):
        nouns = {"system": system_of(system), "world": World() if world is None else world}
        return StudyDesign.of(nouns | given | {"factors": {} if factors is None else factors})
    if factors is not None or world is not None or given:
        raise ConfigurationError("factors, world, runs, seed: a design has its own; leave them out here")
    if isinstance(system, Mapping):
        return StudyDesign.of(system)
    return system if isinstance(system, StudyDesign) else StudyDesign.read(system)


def _workers(design: StudyDesign, executor: Executor | None, count: int | None) -> Callable[[], Workers]:
    combinations = design.plan.combinations
    if any(map(stays_in_this_process, {each.comparison.workload: each.comparison for each in combinations}.values())):
        if executor is not None:
            raise ConfigurationError(
                "executor: no other process finds a live graph, or can be sent its context; name the graph as "
                "module:attribute, and give plain values"
            )
        return lambda: Workers(InThisProcess)
    if executor is not None:
        borrowed = Workers.of(executor)
        return lambda: borrowed
    return lambda: workers_for(design.total_runs, count)


@dataclass
class _StudyWork:
    """The missing cells of a study, to be computed and stored.

    done: ids of finished cells, whichever process computed them. It only grows: files of cells go when a study ends.
    use, runs_measured: how busy the machine was in this attempt, and the runs of it.
    """

    benches: Sequence[SweepBench]
    folder: StudyFolder | None
    progress: Progress
    workers: Callable[[], Workers]
    measured: list[MeasuredRun] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    use: MachineUse = field(default_factory=MachineUse)
    runs_measured: int = 0

    def __post_init__(self) -> None:
        self.sizes = {cell.id: len(cell.orders) for bench in self.benches for cell in bench.cells}
        self._refresh()

    @property
    def is_complete(self) -> bool:
        return len(self.done) == len(self.sizes)

    def compute(self) -> None:
        """Compute missing cells until none is left but those that failed."""
        self._report_progress()
        while missing := self._missing():
            before = len(self.done)
            with contextlib.closing(self._results(missing)) as results:
                for result in results:
                    self._store_result(result)
            self._refresh()
            if len(self.done) == before and self._missing():
                # Another process has the rest: it will finish them, or leave them to us when it ends.
                time.sleep(_LOOK_S)
                self._refresh()
        self._report_progress()

    def _refresh(self) -> None:
        """Update the set of finished cells, whichever process computed them."""
        self.looked_at = time.monotonic()
        if self.folder is None:
            return
        if self.folder.finished():
            self.done |= self.sizes.keys()
        else:
            self.done |= self.folder.done() & self.sizes.keys()

    def _missing(self) -> list[SweepBench]:
        there = self.done | self.failed.keys()
        left = [(bench, tuple(cell for cell in bench.cells if cell.id not in there)) for bench in self.benches]
        return [SweepBench(bench.comparison, bench.settings, cells) for bench, cells in left if cells]

    def _results(self, missing: Sequence[SweepBench]) -> Generator[CellResult]:
        # In one stream, so that no worker waits at the end of a bench for the others.
        virtual = [cell for bench in missing if bench.comparison.clock == "virtual" for cell in bench.cells]
        if virtual:
            with self.workers() as crew, contextlib.closing(run_cells(self._claim(virtual), crew)) as some:
                yield from some
        for bench in missing:
            if bench.comparison.clock == "wall":
                yield from _on_the_wall_clock(bench, self._claim(bench.cells))

    def _claim(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        """Yield the cells that this process gets, claiming each as it is handed out."""
        for cell in cells:
            if self.folder is None or self.folder.claim(cell.id):
                yield cell

    def _store_result(self, result: CellResult) -> None:
        if result.error is not None:
            self.failed[result.cell_id] = f"{type(result.error).__name__}: {result.error}"
        elif self.folder is None:
            self.measured += result.measured
        else:
            self.folder.keep(result.cell_id, result.measured)
        if result.error is None:
            self.done.add(result.cell_id)
            self.runs_measured += len(result.measured)
            if result.cpu_s:
                self.use.add_workers(result.cpu_s)
        if self.folder is not None:
            self.folder.release(result.cell_id)
        self._report_progress()

    def _report_progress(self) -> None:
        # A folder with the cells of a large study takes milliseconds to list, so not for each of them.
        if time.monotonic() - self.looked_at >= _LOOK_S:
            self._refresh()
        self.progress(sum(self.sizes[name] for name in self.done), sum(self.sizes.values()))


def _on_the_wall_clock(bench: SweepBench, cells: Iterator[Cell]) -> Generator[CellResult]:
    first = next(cells, None)
    if first is None:  # another process has them all, and is not to be disturbed by a second laboratory
        return
    with wall_laboratory(bench.comparison, bench.settings) as laboratory:
        for cell in itertools.chain((first,), cells):
            with contextlib.closing(laboratory.measure_all(cell.orders)) as runs:
                yield CellResult(cell.id, tuple(runs))
