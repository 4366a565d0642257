"""`compare`: a request becomes a comparison, which is carried out: its runs, its study, its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from docmind_lab.alternatives.alternative_texts import parse_alternatives, require_no_roles
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError, RecordError, SimulationStalled
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.progress import Interrupted, Progress, shows_progress
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.cell_runner import Bench, bench_of, run_benches
from docmind_lab.experiments.comparison.comparison import (
    DEFAULT_SEED,
    SIDE_BY_SIDE,
    Alternatives,
    Comparison,
)
from docmind_lab.experiments.comparison.documents import Documents, documents_in
from docmind_lab.experiments.comparison.live_estimate import expected_to_send
from docmind_lab.experiments.comparison.own_graph import (
    faults_in,
    not_exercised,
    own_names,
    require_own_world,
)
from docmind_lab.experiments.comparison.replays import replayed_comparison, require_replayable, without_live_endpoints
from docmind_lab.experiments.comparison.wall import asks_live_endpoints
from docmind_lab.experiments.measurement.measured_run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.recordings.live_study import LiveStudy, require_recordable
from docmind_lab.experiments.recordings.replay import replayed_calls
from docmind_lab.experiments.world_options import AnyWorld, Live, Replay, World
from docmind_lab.findings.study import CELLS, Study, prepare_folder, remember
from docmind_lab.services.server import ServiceConditions
from docmind_lab.statistics.latency.profile import latency_profile
from docmind_lab.systems.own import OwnGraph, Services
from docmind_lab.systems.system_catalogue import Command, OwnSystem, System, system_of
from docmind_lab.systems.workload_by_name import systems_said, workload_kind
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.manifest import MachineUse, manifest_of
from docmind_lab.tables.traces.importers.recordings import RUNS, Recording


class RunListener(Protocol):
    """Gets measured runs when all are done: `docmind_lab.telemetry.Telemetry`."""

    def check(self, settings: Settings) -> None:
        """Return if runs can be sent. Called before the first run. Raises: ConfigurationError, EndpointRefused."""
        ...

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Take the runs and the manifest of their study; never raises."""
        ...


def resolve(
    system: System,
    decision_timeout_s: float | None = None,
    *,
    alternatives: Alternatives = None,
    world: AnyWorld | None = None,
    runs: int | None = None,
    seed: int = DEFAULT_SEED,
    workers: int | None = None,
) -> tuple[Comparison, Settings]:
    """Return the comparison that a call of `compare` means, and the settings to run it with: a replay has no endpoint.

    Raises: ConfigurationError for a value that cannot be used, or not with another; RecordError for a recording without
    a finished run.
    """
    world = World() if world is None else world
    settings = (world.settings if isinstance(world, Live) else None) or Settings()
    if isinstance(world, Replay):
        settings = without_live_endpoints(settings)
    clock = clock_of(system, world, settings)
    own = None
    if isinstance(system, OwnSystem):
        require_own_world(system, world, clock, settings)
        services: Services = world.services if isinstance(world, Live) else "simulated"
        own = own_names(system, services, getattr(world, "endpoints", None))
    asked: dict[str, Any] = {"decision_timeout_s": decision_timeout_s, "alternatives": alternatives, "runs": runs}
    if isinstance(world, Replay):
        folder = Path(world.folder)
        recording = Recording.load(folder)
        replayed = replayed_comparison(recording, system, settings, own=own, seed=seed, **asked)
        if not recording.runs:
            raise RecordError(f"{folder / RUNS} has no finished run; take the folder from a copy, or record again")
        require_replayable(replayed, recording, folder, settings)
        return replayed, settings
    if own is None and world.endpoints is not None:
        raise ConfigurationError(
            "endpoints are for a graph of your own: name it, and its inputs (--graph and --inputs), or leave them out"
        )
    return _new_comparison(system, own, world, clock, settings, seed=seed, workers=workers, **asked), settings


def clock_of(system: System, world: AnyWorld, settings: Settings) -> ClockName:
    """Return the clock of a system in a world: the one that is named, or else the one that it needs."""
    if isinstance(world, Replay):
        return "virtual"
    if world.clock is not None:
        return world.clock
    return "wall" if live_endpoint_of(settings) or isinstance(system, Command) else "virtual"


def default_side_by_side(settings: Settings, *, is_own: bool = False) -> int:
    """Return how many runs go on at once on the wall clock if the call does not say.

    What answers a live endpoint is shared by all runs, and a user's nodes may block the event loop that runs share.
    """
    return 1 if is_own or live_endpoint_of(settings) else SIDE_BY_SIDE


def _new_comparison(
    system: System,
    own: OwnGraph | None,
    world: World,
    clock: ClockName,
    settings: Settings,
    *,
    decision_timeout_s: float | None,
    alternatives: Alternatives,
    runs: int | None,
    seed: int,
    workers: int | None,
) -> Comparison:
    """Return a comparison to measure, with defaults from its system and clock where the call is silent."""
    workload = system.kind if own is None else own.workload
    kind, budget = workload_kind(workload), system.budget or Budget()
    defaults = kind.defaults.get(clock, kind.defaults["virtual"])
    named_s = budget.time_s if decision_timeout_s is None else decision_timeout_s
    retries, injection = getattr(system, "retries", None), getattr(system, "router_injection", None)
    if injection and not kind.has_router:
        raise ConfigurationError(f"router_injection: workload {workload} has no router engine; leave it out")
    parsed = parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries)
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if named_s is None else named_s,
        runs=defaults.runs if runs is None else runs,
        seed=seed,
        alternatives=parsed if alternatives is not None else kind.possible(parsed),
        profile=latency_profile(defaults.profile if world.latencies is None else world.latencies, defaults.profile),
        faults=faults_in(kind, world.faults, is_own=own is not None),
        client_retries=retries,
        side_by_side=workers
        if workers is not None and clock == "wall"
        else default_side_by_side(settings, is_own=own is not None),
        router_injection=settings.agents.enable_router_injection if injection is None else injection,
        clock=clock,
        documents=documents_in(system) if own is None else Documents(own.corpus),
        workload=workload,
        budget=budget,
        enforced=getattr(system, "enforced", False),
        server_behaviour=world.behaviour,
        **world.simulation,
        **ServiceConditions.of(system),
    )
    if own is not None:
        require_no_roles(comparison.alternatives)
    return comparison


@answers_wrong_names
@shows_progress("runs")
def compare(
    system: Any = None,
    decision_timeout_s: float | None = None,
    *,
    alternatives: Alternatives = None,
    world: AnyWorld | None = None,
    runs: int | None = None,
    seed: int = DEFAULT_SEED,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    telemetry: RunListener | None = None,
) -> Study:
    """Ask the same questions under every alternative, and measure each run.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(world=dl.World(faults="hang"), alternatives="A,B,C")
        dl.compare(dl.graph(my_graph, ["…"]))   # your own graph; docs/your-system.md
        dl.compare(dl.agent(my_function, ["…"]))    # any other agent; docs/your-system.md
        dl.compare(dl.command(["node", "agent.mjs"], ["…"]))    # a program in any language
        dl.compare(dl.docmind("papers", "questions.jsonl"))     # your own documents; docs/your-system.md
        dl.compare(world=dl.Live(record="monday"))  # then dl.compare(world=dl.Replay("monday")); docs/measurements.md

    Args:
        system: What is under the deadline: a `System`, such as dl.graph(…) or dl.research(), or a graph or a reference
            to one. None means DocMind.
        decision_timeout_s: Budget of each run, in seconds. Defaults to 20, on the wall clock to 2.
        alternatives: Levels, letters or variants, such as "A,B,B:naive,unguarded", or instances. None means all.
        world: What the system meets: a `World` of simulated services, `Live` endpoints, or a `Replay` of a recording.
        runs: How many questions each alternative is asked. Defaults to 40, on the wall clock to 8.
        seed: Keys the questions, latencies and faults.
        out: Folder for tables, plots and the summary.
        workers: Processes in virtual time; None means one on each core, or none for a few runs, and 1 means none. On
            the wall clock, runs under way at once: 1 also measures coordination overhead. None means 4 there, or 1 with
            a live endpoint, which all runs share, or with a graph of your own, whose nodes may block the event loop.
        progress: Called with (runs done, all runs). None draws a bar, from 2 s on.
        telemetry: Where spans of the runs go when all are done: `docmind_lab.telemetry.Telemetry`.

    Returns:
        The study: its tables, and what they say. Interrupted, that of the finished runs, and its first line says so.

    Raises:
        ConfigurationError: A value cannot be used.
        RecordError: A folder has no finished index, or no recording that can be read.
        ServiceError: The services do not start.
        KeyboardInterrupt: It was interrupted before any run was finished.
    """
    comparison, settings = resolve(
        system_of(system),
        decision_timeout_s,
        alternatives=alternatives,
        world=world,
        runs=runs,
        seed=seed,
        workers=workers,
    )
    if isinstance(world, Live):
        require_recordable(world, comparison.workload, None if out is None else Path(out))
        if world.before_sending is not None and asks_live_endpoints(comparison, settings):
            world.before_sending(expected_to_send(comparison, settings))
    return run_comparison(
        comparison,
        settings,
        workers=workers if comparison.clock == "virtual" else None,
        out=out,
        progress=progress,
        world=world,
        telemetry=telemetry,
    )


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    world: AnyWorld | None = None,
    telemetry: RunListener | None = None,
) -> Study:
    """The comparison as a study; arguments as those of `compare`.

    world: names what is recorded, capped or replayed; what the runs meet besides, the comparison has.

    Raises: as `compare`.
    """
    if telemetry is not None:
        telemetry.check(settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    replay = Path(world.folder) if isinstance(world, Replay) else None
    bench = bench_of(comparison, settings, replay)
    is_new = out is not None and not Path(out).exists()
    folder = None if out is None else prepare_folder(out)
    measured: list[MeasuredRun] = []
    interrupted = False
    use = MachineUse()
    # What only a recording says: to look for versions and the state of the code takes a while.
    unfinished = comparison_manifest(comparison, settings, complete=False) if isinstance(world, Live) else {}
    with LiveStudy.open(world, unfinished, [order.facts.run_id for order in bench.orders]) as live:
        try:
            # Closed by the block, whatever raises in it: services and workers end before the study is made.
            with contextlib.closing(_runs(bench, workers, folder, live, use)) as arriving:
                for some in arriving:
                    measured += some
                    if progress is not None:
                        progress(len(measured), comparison.total_runs)
            live.close()
        except KeyboardInterrupt:
            interrupted = True
    if live.cap_reached and not measured:
        raise ConfigurationError(f"{live.cap_reached} before any run was over; allow more")
    complete = not (interrupted or live.cap_reached)
    manifest = comparison_manifest(comparison, settings, complete=complete) | live.manifest_entries()
    if interrupted:
        manifest["interrupted"] = f"{len(measured)} of {comparison.total_runs} runs"
    study = Study.of(measured, manifest | {"machine_use": use.to_dict(len(measured))})
    notes = notes_on(study, comparison.kind.parts, replay)
    study = dataclasses.replace(study, manifest={**study.manifest, **notes})
    if measured:
        remember(study)
    if folder is not None and measured:
        if interrupted:
            # Without figures, which take seconds.
            study.save(folder)
        else:
            # By its public name: figures are a view, which stands above what is measured.
            from docmind_lab import plots  # noqa: PLC0415

            plots.save_study(study, folder)
        CellStore(folder / CELLS).remove()
    if telemetry is not None:
        # Now that nothing is measured any more.
        telemetry.tell(measured, study.manifest)
    if interrupted and not measured:
        if folder is not None and is_new:
            # A folder that holds something stays.
            with contextlib.suppress(OSError):
                CellStore(folder / CELLS).remove()
                folder.rmdir()
        raise Interrupted("no run was finished")
    return study


def notes_on(study: Study, parts: Mapping[str, Sequence[str]], replay: Path | None = None) -> dict[str, Any]:
    """Entries of the manifest that follow from the tables: what no run exercised, where a replay's times are from.

    parts: of a user's graph, as a `WorkloadKind` has them. replay: the folder of what is replayed.
    """
    missing = not_exercised(parts, study.events, study.calls)
    if replay is None:
        return missing
    return missing | {"replayed_calls": replayed_calls(study, Recording.load(replay))}


def comparison_manifest(comparison: Comparison, settings: Settings, *, complete: bool) -> dict[str, Any]:
    """The manifest of a comparison's study. complete: whether all of its runs are there."""
    return manifest_of(
        comparison.design(),
        settings,
        study_id=comparison.study_id,
        complete=complete,
        systems=systems_said([comparison.workload]),
    )


def _runs(
    bench: Bench, workers: int | None, folder: Path | None, live: LiveStudy, use: MachineUse
) -> Generator[Sequence[MeasuredRun]]:
    """Yield the runs as they are done, each stored before. Raises: the error of a cell that was lost."""
    store = None if folder is None else CellStore(folder / CELLS)
    with contextlib.closing(run_benches([bench], use, workers=workers, taps=live.taps)) as results:
        for result in results:
            if isinstance(result.error, SimulationStalled):
                raise SimulationStalled(
                    f"{result.error}; the wall clock has no such limit: clock='wall'"
                ) from result.error
            if result.error is not None:
                raise result.error
            runs = live.record(result.measured)
            if store is not None and runs:
                store.write(result.cell_id, runs)
            yield runs
