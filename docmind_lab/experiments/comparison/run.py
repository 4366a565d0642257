"""`compare`: a request becomes a comparison, which is carried out: its runs, its study, its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec

from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.core.budgets import Budget
from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError, RecordError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.batch.runner import Progress
from docmind_lab.experiments.comparison.design import SIDE_BY_SIDE, Comparison, require_propagation
from docmind_lab.experiments.comparison.documents import Documents, documents_of
from docmind_lab.experiments.comparison.live_estimate import asks_live_endpoints, expected_to_send
from docmind_lab.experiments.comparison.own_graph import faults_in, not_exercised, of_own_graph, require_whole_budget
from docmind_lab.experiments.comparison.replays import replayed_comparison, require_replayable, without_live_endpoints
from docmind_lab.experiments.comparison.request import CompareCall, CompareRequest, RunListener
from docmind_lab.experiments.comparison.virtual import runs_in_virtual_time
from docmind_lab.experiments.comparison.wall import runs_on_the_wall_clock
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.measurement.simulation import live_endpoint_of
from docmind_lab.experiments.recordings.account import account_of
from docmind_lab.experiments.recordings.live_study import NO_RECORDING, LiveStudy, RecordingOptions
from docmind_lab.findings.study import Study, prepare_folder
from docmind_lab.services.faults import Fault
from docmind_lab.statistics.latency.profile import latency_profile
from docmind_lab.systems.kinds import systems_said, workload_kind
from docmind_lab.tables.cell_store import CellStore
from docmind_lab.tables.manifest import MachineUse, manifest_of
from docmind_lab.tables.traces.importers.recordings import RUNS, Recording

CELLS = "cells"
"""Where the finished cells of a comparison are while it goes on; its tables take their place."""


def resolve(request: CompareRequest, settings: Settings) -> tuple[Comparison, Settings]:
    """Return the comparison that a request describes, and the settings to run it with: a replay's have no endpoint.

    Raises: ConfigurationError for a value that cannot be used, or not with another; RecordError for a recording without
    a finished run.
    """
    recorded_in = request.recording.replay
    if recorded_in is not None:
        settings = without_live_endpoints(settings)
    clock = _clock_of(request, settings)
    if request.is_of_own_graph:
        request = of_own_graph(request, settings, clock)
    if recorded_in is not None:
        recording = Recording.load(recorded_in)
        replayed = replayed_comparison(recording, request, clock, settings)
        if not recording.runs:
            raise RecordError(f"{recorded_in / RUNS} has no finished run; take the folder from a copy, or record again")
        require_replayable(replayed, recording, recorded_in, settings)
        return replayed, settings
    return _new_comparison(request, clock, settings), settings


def _clock_of(request: CompareRequest, settings: Settings) -> ClockName:
    if request.clock is not None:
        return request.clock
    is_live = live_endpoint_of(settings) or request.services == "own" or request.recording.is_live
    return "wall" if is_live or request.command is not None else "virtual"


def default_side_by_side(settings: Settings, *, is_own: bool = False) -> int:
    """Return how many runs go on at once on the wall clock if the request does not say.

    What answers a live endpoint is shared by all runs, and a user's nodes may block the event loop that runs share.
    """
    return 1 if is_own or live_endpoint_of(settings) else SIDE_BY_SIDE


def _new_comparison(request: CompareRequest, clock: ClockName, settings: Settings) -> Comparison:
    """Return a comparison to measure, with defaults from its workload and clock where the request is silent."""
    kind, is_own = workload_kind(request.workload), request.is_of_own_graph
    documents = Documents(str(request.documents)) if is_own else documents_of(request.documents, request.questions)
    defaults = kind.defaults.get(clock, kind.defaults["virtual"])
    written = [request.fault] if isinstance(request.fault, str) else request.fault
    profile = defaults.profile if request.profile is None else request.profile
    if request.router_injection and not kind.has_router:
        raise ConfigurationError(f"router_injection: workload {request.workload} has no router engine; leave it out")
    injection, budget = request.router_injection, request.budget or Budget()
    given_s = budget.time_s if request.decision_timeout_s is None else request.decision_timeout_s
    alternatives = parse_alternatives(
        request.alternatives, request.retries, budgeted_retries=settings.agents.max_retries
    )
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if given_s is None else given_s,
        runs=defaults.runs if request.runs is None else request.runs,
        seed=request.seed,
        alternatives=alternatives if request.alternatives is not None else kind.possible(alternatives),
        profile=latency_profile(profile, defaults.profile),
        faults=faults_in(kind, written)
        if is_own
        else tuple(Fault.parse(item) if isinstance(item, str) else item for item in written),
        client_retries=request.retries,
        side_by_side=default_side_by_side(settings, is_own=is_own)
        if request.side_by_side is None
        else request.side_by_side,
        router_injection=settings.agents.enable_router_injection if injection is None else injection,
        clock=clock,
        documents=documents,
        workload=request.workload,
        budget=budget,
        enforced=request.enforced,
        **request.common,
    )
    if is_own:
        require_whole_budget(comparison.alternatives)
    return comparison


P = ParamSpec("P")


def _taking_fields_of(kind: Callable[P, CompareCall]) -> Callable[[Callable[[CompareCall], Study]], Callable[P, Study]]:
    """Return a decorator for a function of one such object: it takes the fields as arguments, and has their docs."""
    signature = inspect.signature(kind)

    def decorate(function: Callable[[CompareCall], Study]) -> Callable[P, Study]:
        @functools.wraps(function)
        def call(*args: P.args, **keywords: P.kwargs) -> Study:
            signature.bind(*args, **keywords)
            return function(kind(*args, **keywords))

        documented = (function, CompareRequest, CompareCall)
        call.__doc__ = "\n\n".join(inspect.getdoc(each) or "" for each in documented)
        vars(call)["__signature__"] = signature.replace(return_annotation=Study)
        return call

    return decorate


@_taking_fields_of(CompareCall)
def compare(call: CompareCall) -> Study:
    """Ask the same questions under every alternative, and measure each run.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(fault="hang", alternatives="A,B,C")
        dl.compare(clock="wall")                # over sockets, in real time
        dl.compare(graph=my_graph, inputs=["…"])    # your own graph; docs/own-graph.md
        dl.compare(agent=my_function, inputs=["…"])    # any other agent; docs/other-agents.md
        dl.compare(command=["node", "agent.mjs"], inputs=["…"])    # a program in any language
        dl.compare(documents="papers", questions="questions.jsonl")    # your own documents; docs/own-documents.md
        dl.compare(clock="wall", record="monday")   # then dl.compare(replay="monday"); docs/own-endpoint.md

    Its keywords are the fields of `CompareRequest`, and of `CompareCall` for how it is carried out.

    Returns:
        The study: its tables, and what they say.

    Raises:
        ConfigurationError: A value cannot be used.
        RecordError: A folder has no finished index, or no recording that can be read.
        ServiceError: The services do not start.
        KeyboardInterrupt: It was interrupted. The finished runs are in `out` by then, if there is one.
    """
    comparison, settings = resolve(call, call.settings or Settings())
    if call.recording.replay is None:
        call.recording.require_fit(comparison.clock, comparison.workload, None if call.out is None else Path(call.out))
    if call.before_sending is not None and asks_live_endpoints(comparison, settings):
        call.before_sending(expected_to_send(comparison, settings))
    return run_comparison(
        comparison,
        settings,
        workers=call.workers,
        out=call.out,
        progress=call.progress,
        recording=call.recording,
        telemetry=call.telemetry,
    )


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    recording: RecordingOptions = NO_RECORDING,
    telemetry: RunListener | None = None,
) -> Study:
    """The comparison as a study; arguments as those of `compare`.

    Raises: as `compare`; KeyboardInterrupt once the finished runs are in `out`.
    """
    check_settings(comparison, settings)
    if telemetry is not None:
        telemetry.check(settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    is_new = out is not None and not Path(out).exists()
    folder = None if out is None else prepare_folder(out)
    measured: list[MeasuredRun] = []
    interrupted: KeyboardInterrupt | None = None
    said: dict[str, Any] = {}
    use = MachineUse()
    try:
        # Closed by the block, whatever raises in it: services and workers end before the study is made.
        with contextlib.closing(_runs(comparison, settings, workers, folder, recording, said, use)) as arriving:
            for some in arriving:
                measured += some
                if progress is not None:
                    progress(len(measured), comparison.total_runs)
    except KeyboardInterrupt as error:
        interrupted = error
    if "ended_by" in said and not measured:
        raise ConfigurationError(f"{said['ended_by']} before any run was over; allow more")
    complete = interrupted is None and "ended_by" not in said
    said["machine_use"] = use.to_dict(len(measured))
    study = Study.of(measured, comparison_manifest(comparison, settings, complete=complete) | said)
    notes = notes_on(study, comparison.kind.parts, recording.replay)
    study = dataclasses.replace(study, manifest={**study.manifest, **notes})
    if folder is not None and measured:
        # By its public name: figures are a view, which stands above what is measured.
        from docmind_lab import plots  # noqa: PLC0415

        plots.save_study(study, folder)
        CellStore(folder / CELLS).remove()
    if telemetry is not None:
        # Now that nothing is measured any more.
        telemetry.tell(measured, study.manifest)
    if interrupted is not None:
        if folder is not None and is_new and not measured:
            # A folder that holds something stays.
            with contextlib.suppress(OSError):
                CellStore(folder / CELLS).remove()
                folder.rmdir()
        raise interrupted
    return study


def notes_on(study: Study, parts: Mapping[str, Sequence[str]], replay: Path | None) -> dict[str, Any]:
    """Entries of the manifest that follow from the tables: what no run exercised, where a replay's times are from.

    parts: of a user's graph, as a `WorkloadKind` has them. replay: the folder of what is replayed.
    """
    missing = not_exercised(parts, study.events, study.calls)
    if replay is None:
        return missing
    return missing | {"replayed_calls": account_of(study, Recording.load(replay)).to_dict()}


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
    comparison: Comparison,
    settings: Settings,
    workers: int | None,
    folder: Path | None,
    recording: RecordingOptions,
    said: dict[str, Any],
    use: MachineUse,
) -> Generator[Sequence[MeasuredRun]]:
    """The runs as they are done. said: is given what the manifest says of a live study's requests, at its end."""
    keep_in = None if folder is None else folder / CELLS
    if comparison.clock == "wall":
        begun = comparison_manifest(comparison, settings, complete=False)
        run_ids = [order.facts.run_id for order in comparison.orders()]
        with LiveStudy.open(recording, begun, run_ids, keep_in) as wire:
            with contextlib.closing(runs_on_the_wall_clock(comparison, settings, wire.taps, use)) as runs:
                yield from ((run,) for run in wire.record(runs))
            said |= wire.manifest_entries()
            wire.close({"complete": not wire.cap_reached} | said)
        return
    virtual = runs_in_virtual_time(
        comparison, settings, workers=workers, keep_in=keep_in, replay=recording.replay, use=use
    )
    with contextlib.closing(virtual) as cells:
        yield from cells


def check_settings(comparison: Comparison, settings: Settings) -> None:
    """Return if the settings leave the comparison what it is. Raises: ConfigurationError naming one that does not."""
    require_propagation(comparison.alternatives, settings)
    if settings.database.qdrant_path:
        raise ConfigurationError(
            "database.qdrant_path: a local store has no network and knows no timeouts, so there is nothing to "
            "measure; use database.qdrant_url, or neither for the simulated store"
        )
