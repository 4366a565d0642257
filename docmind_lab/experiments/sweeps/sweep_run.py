"""Run a study: compute every missing cell, store each as it ends, and build the tables when all are there.

`recommend` sweeps decision timeouts, and names the one to take.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.randomness import keyed_uniform
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch import Simulated
from docmind_lab.experiments.batch.cell_run import Progress
from docmind_lab.experiments.batch.cells import RUNS_PER_CELL, cells_of
from docmind_lab.experiments.comparison.cell_runner import Bench, run_benches, system_for
from docmind_lab.experiments.comparison.comparison import Alternatives, Comparison
from docmind_lab.experiments.comparison.comparison_run import check_settings, notes_on
from docmind_lab.experiments.comparison.documents import kind_of
from docmind_lab.experiments.comparison.wall import asks_live_endpoints
from docmind_lab.experiments.measurement.measured_run import MeasuredRun, RunOrder
from docmind_lab.experiments.sweeps.study_design import StudyDesign
from docmind_lab.experiments.system_options import system_of
from docmind_lab.experiments.world_options import AnyWorld, Live, World
from docmind_lab.findings.recommendation import Recommendation
from docmind_lab.findings.study import Study
from docmind_lab.findings.study_folder import StudyFolder
from docmind_lab.systems.kinds import systems_said, workload_kind
from docmind_lab.systems.own.own_kind import DEFAULTS
from docmind_lab.tables.manifest import MachineUse, manifest_of

_OF_THE_DEFAULT: Final = (0.5, 1.0, 1.5, 2.0, 3.0)
# 73 runs without a failure show that 95 % are answered in time, with 95 % confidence; some more leave room for one.
_RUNS: Final = 120


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
        check_settings(comparison, own)
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
    if workers is not None and not any(bench.is_virtual for bench in benches):
        raise ConfigurationError("workers: only runs in virtual time have worker processes; leave it out")
    with contextlib.ExitStack() as ending:
        folder = None
        if out is not None:
            folder = ending.enter_context(StudyFolder(out, checked.study_id, checked.to_dict(), settings))
            if folder.finished():
                return Study.load(folder.path)
        shown = progress or ending.enter_context(progress_bar())
        work = _StudyWork(benches, folder, shown)
        work.compute(workers)
        manifest = manifest_of(
            checked.to_dict(),
            settings,
            study_id=checked.study_id,
            complete=not work.failed,
            systems=systems_said(checked.workloads),
        ) | {
            "failed_cells": [{"cell": name, "reason": reason} for name, reason in sorted(work.failed.items())],
            "left_out": list(checked.plan.left_out),
            "machine_use": work.use.to_dict(work.runs_measured),
        }
        parts = {} if checked.own is None else workload_kind(checked.own.workload).parts
        if folder is not None:
            return folder.finish(sorted(work.done), manifest, lambda study: notes_on(study, parts))
        study = Study.of(work.measured, manifest)
        return replace(study, manifest={**manifest, **notes_on(study, parts)})


@answers_wrong_names
def recommend(
    system: Any = None,
    target: float = 0.95,
    *,
    confidence: float = 0.95,
    decision_timeouts_s: Sequence[float] | None = None,
    alternatives: Alternatives = None,
    world: AnyWorld | None = None,
    runs: int = _RUNS,
    seed: int = 7,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Recommendation:
    """Measure a system at several decision timeouts, and name the smallest that is sure to reach a target.

        dl.recommend(dl.graph(my_graph, ["…"]), 0.95, decision_timeouts_s=[5, 10, 20])

    Args:
        system: What is under the deadline, as `compare` takes it.
        target: Share of runs that should be answered in time, above 0, below 1.
        confidence: How sure to be of it, above 0, below 1.
        decision_timeouts_s: Those to try, in seconds. None means half to three times the system's own.
        alternatives: As `compare` takes them.
        world: What the system meets, as `compare` takes it.
        runs: Questions asked of each alternative at each timeout.
        seed: Keys the questions, latencies and faults.
        out: A folder for the study, as `sweep` takes it.
        workers: Processes in virtual time, as `sweep` takes them.
        progress: Called with (runs done, all runs).

    Returns:
        The recommendation: a table, sentences, and how many more runs would settle what is open.

    Raises:
        ConfigurationError: A value cannot be used.
    """
    subject = system_of(system)
    if decision_timeouts_s is None:
        kind = kind_of(subject)
        usual_s = (workload_kind(kind).defaults if kind else DEFAULTS)["virtual"].decision_timeout_s
        decision_timeouts_s = [usual_s * factor for factor in _OF_THE_DEFAULT]
    factors: dict[str, Any] = {"decision_timeout_s": list(decision_timeouts_s)}
    if alternatives is not None:
        factors["alternatives"] = alternatives
    study = sweep(subject, factors, world=world, runs=runs, seed=seed, out=out, workers=workers, progress=progress)
    return study.recommend(target, confidence)


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
    runs_measured: how busy the machine was in this attempt, and the runs of it.
    """

    def __init__(self, benches: Sequence[Bench], folder: StudyFolder | None, progress: Progress) -> None:
        self.folder, self.progress, self.use = folder, progress, MachineUse()
        self.measured: list[MeasuredRun] = []
        self.failed: dict[str, str] = {}
        self.runs_measured = 0
        self.sizes = {cell.id: len(cell.orders) for bench in benches for cell in bench.cells}
        self.done = set() if folder is None else folder.done() & self.sizes.keys()
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

    def _report_progress(self) -> None:
        self.progress(sum(self.sizes[name] for name in self.done), sum(self.sizes.values()))
