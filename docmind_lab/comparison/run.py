"""`compare`: the same questions under every alternative, measured, as a study."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.batch import CellStore
from docmind_lab.budgets import Budget
from docmind_lab.clocks import ClockName
from docmind_lab.comparison.design import SIDE_BY_SIDE, Comparison
from docmind_lab.comparison.own import asked_of, faults_in, require_own_only, require_whole_budget
from docmind_lab.comparison.replays import Asked, off_endpoints, replayed_comparison
from docmind_lab.comparison.sending import expected_to_send
from docmind_lab.comparison.virtual import runs_in_virtual_time
from docmind_lab.comparison.wall import runs_on_the_wall_clock
from docmind_lab.deadlines import DEADLINE_KEY
from docmind_lab.errors import ConfigurationError
from docmind_lab.manifest import manifest_of
from docmind_lab.measurement import MeasuredRun
from docmind_lab.recordings.account import account_of
from docmind_lab.recordings.choices import NOTHING_KEPT, Kept, Wire
from docmind_lab.recordings.recording import Recording
from docmind_lab.records import to_frame
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings
from docmind_lab.study import Study, prepare_folder
from docmind_lab.telemetry import Telemetry
from docmind_lab.workloads.kinds import systems_said, workload_kind
from docmind_lab.workloads.own import Inputs, Services

Progress = Callable[[int, int], None]
Watch = Callable[[pd.DataFrame], None]
BeforeSending = Callable[[str], None]

# A person reads no faster, and making a summary takes some milliseconds.
_LOOK_EVERY_S = 0.5

CELLS = "cells"
"""Where the finished cells of a comparison are while it goes on; its tables take their place."""


def compare(
    decision_timeout_s: float | None = None,
    runs: int | None = None,
    seed: int = 7,
    *,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: str | LatencyProfile | None = None,
    faults: Sequence[str | Fault] | str = (),
    stops_on_disconnect: bool = True,
    retries: int | None = None,
    router_injection: bool | None = None,
    budget: Budget | None = None,
    workload: str = "supervisor",
    corpus: str = "language_reference",
    graph: Any = None,
    inputs: Inputs | None = None,
    deadline_key: str = DEADLINE_KEY,
    services: Services = "simulated",
    clock: ClockName | None = None,
    workers: int | None = None,
    side_by_side: int | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    record: str | os.PathLike[str] | None = None,
    record_text: bool = False,
    replay: str | os.PathLike[str] | None = None,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    before_sending: BeforeSending | None = None,
    telemetry: Telemetry | None = None,
) -> Study:
    """The same questions under every alternative.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(faults="hang", alternatives="A,B,C")
        dl.compare(clock="wall")                # over sockets, in real time
        dl.compare(graph=my_graph, inputs=["…"])    # your own graph; docs/own-graph.md
        dl.compare(clock="wall", record="monday")   # then dl.compare(replay="monday"); docs/own-endpoint.md

    decision_timeout_s: the budget of each run, seconds; 20, on the wall clock 2. runs: questions asked of each
    alternative; 40, on the wall clock 8. alternatives: levels, letters ("A"), variants ("A:per_read", "B:naive") or
    instances; None for all. profile: a latency profile or its name; "heavy_tail/3", on the wall clock "typical/6".
    faults: as `services.faults` writes them. retries: tries after the first, of whoever retries under an alternative;
    None leaves the openai client its own 2. router_injection: retrieval asks a router engine first, as ADR-056 has it;
    None for what the settings say. budget: tokens, calls and cost of each run, enforced where the deadline is
    propagated and measured everywhere; its `time_s` is the decision timeout by another name.
    workload: the system under the deadline, one of `workloads.WORKLOADS`; questions and defaults here are those of
    "supervisor", DocMind itself. corpus: "language_reference" with its forty questions, or "handbook" with twelve,
    which is the same text in every Python.
    graph: a compiled LangGraph graph, a function without arguments that makes one, or "module:attribute", which worker
    processes can find too; in place of a workload. inputs: a list of its inputs, or a file with one in each line.
    deadline_key: the key of the graph's input that takes the deadline, if it has one. services: "simulated" (whatever
    host the graph names, simulated services answer: no key is used and nothing is spent) or "own" (its requests go
    where its code sends them; on the wall clock only).
    clock: "virtual" (the same stack in simulated time: no waiting, the same tables every time) or "wall"; None for
    wall if the settings name a live endpoint, else virtual. workers: processes in virtual time; None for one on each
    core, or none for a few runs. side_by_side: runs under way at once on the wall clock; 1 measures coordination
    overhead too; None for 4, and for 1 with a graph of your own, whose nodes may block the event loop that runs share.
    out: a folder for tables, plots and report. progress: called with (done, all). watch: called with the
    `runs` table of what is done, now and then while it grows.
    record: a folder for a recording of the study on the wall clock; record_text: with requests' digests and responses.
    replay: the folder of a recording, which settles all but budgets, runs, alternatives and retries; in virtual time.
    max_requests, max_tokens: of model calls on the wall clock. At the first request past one no further run begins, and
    runs that need another request are left out; the study is then not complete, and its manifest says why.
    before_sending: called with what a live endpoint is expected to be sent, before it is; whatever it raises ends it.
    telemetry: where spans and metrics of the runs go when all are done; None for nowhere.

    Interrupted, it raises KeyboardInterrupt after saving the finished runs to `out`, if there is one.
    Raises: ConfigurationError for a value that cannot be used; ServiceError if the services do not start.
    """
    settings = settings or Settings()
    kept = Kept.of(record, record_text, replay, max_requests, max_tokens)
    if clock is None and (services == "own" or kept.is_live):
        clock = "wall"
    if kept.replay is not None:
        clock, settings = clock or "virtual", off_endpoints(settings)
    on_clock = _clock_for(settings) if clock is None else clock
    if graph is not None or inputs is not None or services != "simulated":
        others = {"workload": workload != "supervisor", "corpus": corpus != "language_reference"}
        others |= {"retries": retries is not None, "router_injection": bool(router_injection)}
        require_own_only(settings, on_clock, services, [name for name, is_given in others.items() if is_given])
        own = asked_of(graph, inputs, deadline_key, services)
        workload, corpus = own.workload, own.corpus
    if kept.replay is not None:
        settled = {"profile": profile is not None, "faults": bool(faults), "clock": on_clock != "virtual"}
        settled |= {"stops_on_disconnect": not stops_on_disconnect, "side_by_side": side_by_side is not None}
        settled |= {"router_injection": router_injection is not None}
        if graph is None:
            settled |= {"workload": workload != "supervisor", "corpus": corpus != "language_reference"}
        own_system = None if graph is None else (workload, corpus)
        asked = Asked(decision_timeout_s, runs, seed, alternatives, retries, own_system, budget)
        replayed = replayed_comparison(Recording.load(kept.replay), asked, settled, settings)
        return run_comparison(
            replayed,
            settings,
            workers=workers,
            out=out,
            progress=progress,
            watch=watch,
            kept=kept,
            telemetry=telemetry,
        )
    kind = workload_kind(workload)
    by_clock = kind.defaults
    defaults = by_clock.get(on_clock, by_clock["virtual"])
    written = [faults] if isinstance(faults, str) else faults
    struck = tuple(Fault.parse(item) if isinstance(item, str) else item for item in written)
    profile = defaults.profile if profile is None else profile
    budget = budget or Budget()
    said_s = budget.time_s if decision_timeout_s is None else decision_timeout_s
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if said_s is None else said_s,
        runs=defaults.runs if runs is None else runs,
        seed=seed,
        alternatives=parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries),
        profile=LatencyProfile.named(profile) if isinstance(profile, str) else profile,
        faults=struck if graph is None else faults_in(kind, struck),
        stops_on_disconnect=stops_on_disconnect,
        client_retries=retries,
        side_by_side=(SIDE_BY_SIDE if graph is None else 1) if side_by_side is None else side_by_side,
        router_injection=settings.agents.enable_router_injection if router_injection is None else router_injection,
        clock=on_clock,
        corpus=corpus,
        workload=workload,
        budget=budget,
    )
    if graph is not None:
        require_whole_budget(comparison.alternatives)
    kept.require_fit(on_clock, workload, None if out is None else Path(out))
    if before_sending is not None and on_clock == "wall" and (services == "own" or _clock_for(settings) == "wall"):
        before_sending(expected_to_send(comparison, settings))
    return run_comparison(
        comparison,
        settings,
        workers=workers,
        out=out,
        progress=progress,
        watch=watch,
        kept=kept,
        telemetry=telemetry,
    )


def _clock_for(settings: Settings) -> ClockName:
    is_live = settings.llm.base_url is not None or settings.database.qdrant_url is not None
    return "wall" if is_live else "virtual"


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    kept: Kept = NOTHING_KEPT,
    telemetry: Telemetry | None = None,
) -> Study:
    """`compare`, for a comparison that has been checked."""
    check_settings(comparison, settings)
    if telemetry is not None:
        telemetry.check(settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    folder = None if out is None else prepare_folder(out)
    measured: list[MeasuredRun] = []
    next_look_at = 0.0
    interrupted: KeyboardInterrupt | None = None
    said: dict[str, Any] = {}
    try:
        # Closed by the block, whatever raises in it: services and workers end before the study is made.
        with contextlib.closing(_runs(comparison, settings, workers, folder, kept, said)) as arriving:
            for some in arriving:
                measured += some
                if progress is not None:
                    progress(len(measured), comparison.total_runs)
                if watch is not None and time.monotonic() >= next_look_at:
                    watch(to_frame("runs", [item.run for item in measured]))
                    next_look_at = time.monotonic() + _LOOK_EVERY_S
    except KeyboardInterrupt as error:
        interrupted = error
    if "ended_by" in said and not measured:
        raise ConfigurationError(f"{said['ended_by']} before any run was over; allow more")
    complete = interrupted is None and "ended_by" not in said
    study = Study.of(measured, comparison_manifest(comparison, settings, complete=complete) | said)
    if kept.replay is not None:
        # What a replay drew is a matter of its tables and of what was recorded; nobody counts while it goes on.
        account = account_of(study, Recording.load(kept.replay))
        study = dataclasses.replace(study, manifest={**study.manifest, "replayed_calls": account.to_dict()})
    if folder is not None and measured:
        # Function-level: drawing is slow to import and not needed to measure.
        from docmind_lab.reports.folder import save_study  # noqa: PLC0415

        save_study(study, folder)
        CellStore(folder / CELLS).remove()
    if telemetry is not None:
        # Now that nothing is measured any more.
        telemetry.tell(measured, study.manifest)
    if interrupted is not None:
        raise interrupted
    return study


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
    kept: Kept,
    said: dict[str, Any],
) -> Generator[Sequence[MeasuredRun]]:
    """The runs as they are done. said: is given what the manifest says of a live study's requests, at its end."""
    keep_in = None if folder is None else folder / CELLS
    if comparison.clock == "wall":
        begun = comparison_manifest(comparison, settings, complete=False)
        with Wire.opened(kept, begun, _run_ids(comparison), keep_in) as wire:
            with contextlib.closing(runs_on_the_wall_clock(comparison, settings, wire.taps)) as runs:
                yield from ((run,) for run in wire.finished(runs))
            said |= wire.said()
            wire.close({"complete": not wire.reached} | said)
        return
    virtual = runs_in_virtual_time(comparison, settings, workers=workers, keep_in=keep_in, replay=kept.replay)
    with contextlib.closing(virtual) as cells:
        yield from cells


def _run_ids(comparison: Comparison) -> list[str]:
    return [order.facts.run_id for order in comparison.orders()]


def check_settings(comparison: Comparison, settings: Settings) -> None:
    """Return if the settings leave the comparison what it is. Raises: ConfigurationError naming one that does not."""
    propagating = [alternative.name for alternative in comparison.alternatives if alternative.propagates]
    if propagating and not settings.agents.enable_deadline_propagation:
        raise ConfigurationError(
            f"agents.enable_deadline_propagation=false would make {', '.join(propagating)} another alternative; "
            "leave it on, or leave the alternative out"
        )
    if settings.database.qdrant_path:
        raise ConfigurationError(
            "database.qdrant_path: a local store has no network and knows no timeouts, so there is nothing to "
            "measure; use database.qdrant_url, or neither for the simulated store"
        )
