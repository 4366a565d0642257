"""`compare`: the same questions under every alternative, measured, as a study."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence

from docmind_lab.alternatives import Alternative
from docmind_lab.alternatives.names import parse_alternatives
from docmind_lab.comparison.design import DEFAULT_PROFILE, SIDE_BY_SIDE, Comparison
from docmind_lab.comparison.wall import runs_on_the_wall_clock
from docmind_lab.errors import ConfigurationError
from docmind_lab.manifest import manifest_of
from docmind_lab.measurement import MeasuredRun
from docmind_lab.services.faults import Fault
from docmind_lab.services.latency import LatencyProfile
from docmind_lab.settings import Settings
from docmind_lab.study import Study, prepare_folder

Progress = Callable[[int, int], None]


def compare(
    decision_timeout_s: float = 2.0,
    runs: int = 8,
    seed: int = 7,
    *,
    alternatives: Sequence[str | Alternative] | str | None = None,
    profile: str | LatencyProfile = DEFAULT_PROFILE,
    faults: Sequence[str | Fault] | str = (),
    stops_on_disconnect: bool = True,
    retries: int | None = None,
    side_by_side: int = SIDE_BY_SIDE,
    router_injection: bool | None = None,
    settings: Settings | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Study:
    """The same questions under every alternative, on the wall clock.

        study = dl.compare(decision_timeout_s=2, runs=8, seed=7)
        study                                   # a table, and what it says
        dl.compare(faults="hang", alternatives="A,B,C")

    decision_timeout_s: the budget of each run, seconds. runs: questions asked of each alternative. alternatives:
    levels, letters ("A"), variants ("A:per_read", "B:naive") or instances; None for all. profile: a latency profile
    or its name. faults: as `services.faults` writes them. retries: tries after the first, of whoever retries under
    an alternative; None leaves the openai client its own 2. side_by_side: runs under way at once; 1 measures
    coordination overhead too. router_injection: retrieval asks a router engine first, as ADR-056 has it; None for what
    the settings say. out: a folder for tables, plots and report. progress: called with (done, all).

    Interrupted, it raises KeyboardInterrupt after saving the finished runs to `out`, if there is one.
    Raises: ConfigurationError for a value that cannot be used; ServiceError if the services do not start.
    """
    settings = settings or Settings()
    fault_list = [faults] if isinstance(faults, str) else list(faults)
    comparison = Comparison(
        decision_timeout_s=decision_timeout_s,
        runs=runs,
        seed=seed,
        alternatives=parse_alternatives(alternatives, retries, budgeted_retries=settings.agents.max_retries),
        profile=LatencyProfile.named(profile) if isinstance(profile, str) else profile,
        faults=tuple(Fault.parse(item) if isinstance(item, str) else item for item in fault_list),
        stops_on_disconnect=stops_on_disconnect,
        client_retries=retries,
        side_by_side=side_by_side,
        router_injection=settings.agents.enable_router_injection if router_injection is None else router_injection,
    )
    return run_comparison(comparison, settings, out=out, progress=progress)


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Study:
    """`compare`, for a comparison that has been checked."""
    _check_settings(comparison, settings)
    settings = settings.replaced(agents={"enable_router_injection": comparison.router_injection})
    if out is not None:
        prepare_folder(out)
    measured: list[MeasuredRun] = []
    interrupted: KeyboardInterrupt | None = None
    try:
        # Closed by the block, whatever raises in it: services and pools end before the study is made.
        with contextlib.closing(runs_on_the_wall_clock(comparison, settings)) as runs:
            for run in runs:
                measured.append(run)
                if progress is not None:
                    progress(len(measured), comparison.total_runs)
    except KeyboardInterrupt as error:
        interrupted = error
    study = Study.of(
        measured, manifest_of(comparison.design(), settings, study_id=comparison.study_id, complete=interrupted is None)
    )
    if out is not None and measured:
        # Function-level: drawing is slow to import and not needed to measure.
        from docmind_lab.report import save_study  # noqa: PLC0415

        save_study(study, out)
    if interrupted is not None:
        raise interrupted
    return study


def _check_settings(comparison: Comparison, settings: Settings) -> None:
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
