"""`compare`: the same questions under every alternative, measured, as a study."""

from __future__ import annotations

import contextlib
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
from docmind_lab.comparison.virtual import runs_in_virtual_time
from docmind_lab.comparison.wall import runs_on_the_wall_clock
from docmind_lab.errors import ConfigurationError
from docmind_lab.manifest import manifest_of
from docmind_lab.measurement import MeasuredRun
from docmind_lab.records import to_frame
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings
from docmind_lab.study import Study, prepare_folder
from docmind_lab.telemetry import Telemetry
from docmind_lab.workloads.kinds import systems_said, workload_kind

Progress = Callable[[int, int], None]
Watch = Callable[[pd.DataFrame], None]

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
    clock: ClockName | None = None,
    workers: int | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    telemetry: Telemetry | None = None,
) -> Study:
    """The same questions under every alternative.

        study = dl.compare(decision_timeout_s=20, runs=40, seed=7)
        study                                   # a table, and what it says
        dl.compare(faults="hang", alternatives="A,B,C")
        dl.compare(clock="wall")                # over sockets, in real time

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
    clock: "virtual" (the same stack in simulated time: no waiting, the same tables every time) or "wall"; None for
    wall if the settings name a live endpoint, else virtual. workers: processes in virtual time; None for one on each
    core, or none for a few runs. side_by_side: runs under way at once on the wall clock; 1 measures coordination
    overhead too. out: a folder for tables, plots and report. progress: called with (done, all). watch: called with the
    `runs` table of what is done, now and then while it grows. telemetry: where spans and metrics of the runs go when
    all are done; None for nowhere.

    Interrupted, it raises KeyboardInterrupt after saving the finished runs to `out`, if there is one.
    Raises: ConfigurationError for a value that cannot be used; ServiceError if the services do not start.
    """
    settings = settings or Settings()
    on_clock = _clock_for(settings) if clock is None else clock
    by_clock = workload_kind(workload).defaults
    defaults = by_clock.get(on_clock, by_clock["virtual"])
    fault_list = [faults] if isinstance(faults, str) else list(faults)
    profile = defaults.profile if profile is None else profile
    budget = budget or Budget()
    said_s = budget.time_s if decision_timeout_s is None else decision_timeout_s
    comparison = Comparison(
        decision_timeout_s=defaults.decision_timeout_s if said_s is None else said_s,
        runs=defaults.runs if runs is None else runs,
        seed=seed,
        alternatives=parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries),
        profile=LatencyProfile.named(profile) if isinstance(profile, str) else profile,
        faults=tuple(Fault.parse(item) if isinstance(item, str) else item for item in fault_list),
        stops_on_disconnect=stops_on_disconnect,
        client_retries=retries,
        side_by_side=side_by_side,
        router_injection=settings.agents.enable_router_injection if router_injection is None else router_injection,
        clock=on_clock,
        corpus=corpus,
        workload=workload,
        budget=budget,
    )
    return run_comparison(
        comparison, settings, workers=workers, out=out, progress=progress, watch=watch, telemetry=telemetry
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
    try:
        # Closed by the block, whatever raises in it: services and workers end before the study is made.
        with contextlib.closing(_runs(comparison, settings, workers, folder)) as arriving:
            for some in arriving:
                measured += some
                if progress is not None:
                    progress(len(measured), comparison.total_runs)
                if watch is not None and time.monotonic() >= next_look_at:
                    watch(to_frame("runs", [item.run for item in measured]))
                    next_look_at = time.monotonic() + _LOOK_EVERY_S
    except KeyboardInterrupt as error:
        interrupted = error
    study = Study.of(measured, comparison_manifest(comparison, settings, complete=interrupted is None))
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
    comparison: Comparison, settings: Settings, workers: int | None, folder: Path | None
) -> Generator[Sequence[MeasuredRun]]:
    if comparison.clock == "wall":
        with contextlib.closing(runs_on_the_wall_clock(comparison, settings)) as runs:
            for run in runs:
                yield (run,)
        return
    keep_in = None if folder is None else folder / CELLS
    with contextlib.closing(runs_in_virtual_time(comparison, settings, workers=workers, keep_in=keep_in)) as cells:
        yield from cells


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
