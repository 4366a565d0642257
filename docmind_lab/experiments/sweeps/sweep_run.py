"""Run a study: compute every missing cell, store each as it ends, and build the tables when all are there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.progress import Interrupted, Progress, shows_progress
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.batch.cells import RUNS_PER_CELL, cells_of
from docmind_lab.experiments.comparison.cell_runner import Bench, run_benches, system_for
from docmind_lab.experiments.comparison.comparison import Comparison
from docmind_lab.experiments.comparison.comparison_run import notes_on
from docmind_lab.experiments.comparison.wall import asks_live_endpoints
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.world_options import AnyWorld, Live, World
from docmind_lab.findings.study import Study, is_finished, remember
from docmind_lab.findings.study_folder import StudyFolder
from docmind_lab.systems.system_catalogue import system_of
from docmind_lab.systems.workload_by_name import systems_said, workload_kind
from docmind_lab.tables.manifest import MachineUse, manifest_of


def benches_of(design: StudyDesign, settings: Settings) -> list[Bench]:
    """Group every run of the study into cells by the services they need, in an order fixed by the design.

    Within a bench the repeats go round the combinations, so that a study that is stopped has some of each; on the wall
    clock the order is drawn, so that a drift of the machine strikes no alternative alone.
    Raises: ConfigurationError for settings that cannot be used with the design.
    """
    grouped: dict[tuple[str, Simulated], list[tuple[float, RunOrder]]] = {}
    comparisons: dict[tuple[str, Simulated], Comparison] = {}
    for number, comparison in enumerate(design.plan.combinations):
        own = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
        services: tuple[str, Simulated] = (comparison.clock, system_for(comparison, own))
        comparisons.setdefault(services, comparison)
        has_server_log = not asks_live_endpoints(comparison, own)
        orders = [
            replace(order, facts=replace(order.facts, study_id=design.study_id))
            for order in comparison.orders_of(0, f"{design.study_id}-{number:04}", has_server_log=has_server_log)
        ]
        grouped.setdefault(services, []).extend(
            (keyed_uniform(design.seed, "order", order.facts.run_id) if comparison.clock == "wall" else repeat, order)
            for repeat, order in enumerate(orders)
        )
    benches = []
    for number, (services, members) in enumerate(grouped.items()):
        orders = [order for _, order in sorted(members, key=lambda member: member[0])]
        cells = cells_of(orders, services[1], RUNS_PER_CELL, prefix=f"{number:02}-")
        benches.append(Bench(comparisons[services], services[1], tuple(cells)))
    return benches


@answers_wrong_names
@shows_progress("runs")
def sweep(
    system: Any = None,
    factors: Mapping[str, Any] | None = None,
    *,
    world: AnyWorld | None = None,
    runs: int | None = None,
    seed: int | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
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
            it ended. One process at a time works on a folder.
        workers: Processes in virtual time. None means one on each core, or none for a few runs; 1 means none.
        progress: Called with (runs done, all runs). None draws a bar, from 2 s on.
        settings: Settings; those of the environment when left out.

    The tables do not depend on who computes them, nor in how many attempts. A cell that is lost twice (its worker died
    or stalled, a run raised) is named in `manifest["failed_cells"]`, and the study is not complete; the same call tries
    it again.
    Interrupted, it returns the study of the finished cells, and its first line says so. They are in the folder, and
    the same call goes on from there.
    Raises: ConfigurationError for a design, settings or folder that cannot be used; RecordError when a cell cannot be
    written: the others are intact; KeyboardInterrupt when nothing was finished, and then there is no folder.
    """
    checked = _checked_design(system, factors, world, {"repeats": runs, "seed": seed})
    settings = settings or (world.settings if isinstance(world, Live) else None) or Settings()
    benches = benches_of(checked, settings)
    if workers is not None and not any(bench.is_virtual for bench in benches):
        raise ConfigurationError("workers: only runs in virtual time have worker processes; leave it out")
    with contextlib.ExitStack() as ending:
        folder = None
        if out is not None:
            folder = ending.enter_context(StudyFolder(out, checked.study_id, checked.to_dict(), settings))
            if is_finished(folder.path):
                return remember(Study.load(folder.path))
        work = _StudyWork(benches, folder, progress or (lambda done, total: None))
        finished = ""
        try:
            work.compute(workers)
        except KeyboardInterrupt:
            if not work.done:
                raise Interrupted("no run was finished") from None
            finished = f"{work.runs_done} of {checked.total_runs} runs"
        manifest = manifest_of(
            checked.to_dict(),
            settings,
            study_id=checked.study_id,
            complete=not (work.failed or finished),
            systems=systems_said(checked.workloads),
        ) | {
            "failed_cells": [{"cell": name, "reason": reason} for name, reason in sorted(work.failed.items())],
            "left_out": list(checked.plan.left_out),
            "machine_use": work.use.to_dict(work.runs_measured),
        }
        parts = {} if checked.own is None else workload_kind(checked.own.workload).parts
        if folder is not None and not finished:
            return remember(folder.finish(sorted(work.done), manifest, lambda study: notes_on(study, parts)))
        study = work.study(manifest | ({"interrupted": finished} if finished else {}))
        return remember(replace(study, manifest={**study.manifest, **notes_on(study, parts)}))


def _checked_design(
    system: Any, factors: Mapping[str, Any] | None, world: AnyWorld | None, numbers: Mapping[str, int | None]
) -> StudyDesign:
    stated = {name: value for name, value in numbers.items() if value is not None}
    is_file = isinstance(system, os.PathLike) or (isinstance(system, str) and system.endswith(".toml"))
    if not (is_file or isinstance(system, StudyDesign | Mapping)):
        nouns = {"system": system_of(system), "world": World() if world is None else world}
        return StudyDesign.of(nouns | stated | {"factors": {} if factors is None else factors})
    if factors is not None or world is not None or stated:
        raise ConfigurationError("factors, world, runs, seed: a design has its own; leave them out here")
    if isinstance(system, Mapping):
        return StudyDesign.of(system)
    return system if isinstance(system, StudyDesign) else StudyDesign.read(system)


class _StudyWork:
    """The missing cells of a study, to be computed and stored.

    done: ids of the finished cells, those of earlier attempts included. failed: id of a cell that was lost → why. use,
    runs_measured: the time that this attempt took, and the runs of it.
    """

    def __init__(self, benches: Sequence[Bench], folder: StudyFolder | None, progress: Progress) -> None:
        self.folder, self.progress, self.use = folder, progress, MachineUse()
        self.measured: list[MeasuredRun] = []
        self.failed: dict[str, str] = {}
        self.runs_measured = 0
        self.sizes = {cell.id: len(cell.orders) for bench in benches for cell in bench.cells}
        self.done = set() if folder is None else folder.store.done() & self.sizes.keys()
        self.missing = [
            replace(bench, cells=missing)
            for bench in benches
            if (missing := tuple(cell for cell in bench.cells if cell.id not in self.done))
        ]

    def compute(self, workers: int | None) -> None:
        """Compute every missing cell and store it as it is done. workers: as `run_benches` takes them."""
        self._report_progress()
        with contextlib.closing(run_benches(self.missing, self.use, workers=workers)) as results:
            for result in results:
                if result.error is not None:
                    self.failed[result.cell_id] = f"{type(result.error).__name__}: {result.error}"
                    continue
                if self.folder is None:
                    self.measured += result.measured
                else:
                    self.folder.keep(result.cell_id, result.measured)
                self.done.add(result.cell_id)
                self.runs_measured += len(result.measured)
                self._report_progress()

    @property
    def runs_done(self) -> int:
        """How many runs are finished, those of earlier attempts included."""
        return sum(self.sizes[name] for name in self.done)

    def study(self, manifest: Mapping[str, Any]) -> Study:
        """Return the study of the finished cells."""
        if self.folder is None:
            return Study.of(self.measured, manifest)
        tables = self.folder.store.read(sorted(self.done))
        return Study(tables.runs, tables.calls, tables.events, manifest)

    def _report_progress(self) -> None:
        self.progress(self.runs_done, sum(self.sizes.values()))
