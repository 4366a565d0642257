"""A comparison carried out: its runs, its study, its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from docmind_lab.analysis.cell_store import CellStore
from docmind_lab.analysis.manifest import MachineUse, manifest_of
from docmind_lab.analysis.study import Study, prepare_folder
from docmind_lab.analysis.tables import to_frame
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.experiments.comparison.design import Comparison
from docmind_lab.experiments.comparison.virtual import runs_in_virtual_time
from docmind_lab.experiments.comparison.wall import runs_on_the_wall_clock
from docmind_lab.experiments.measurement.run import MeasuredRun
from docmind_lab.experiments.recordings.account import account_of
from docmind_lab.experiments.recordings.choices import NOTHING_KEPT, Kept, Wire
from docmind_lab.experiments.recordings.recording import Recording
from docmind_lab.workloads.kinds import systems_said

Progress = Callable[[int, int], None]
Watch = Callable[[pd.DataFrame], None]

# A person reads no faster, and making a summary takes some milliseconds.
_LOOK_EVERY_S = 0.5

CELLS = "cells"
"""Where the finished cells of a comparison are while it goes on; its tables take their place."""


class RunListener(Protocol):
    """Who is told of measured runs when all are done: `docmind_lab.telemetry.Telemetry`."""

    def check(self, settings: Settings) -> None:
        """Return if it can be told. Called before the first run. Raises: ConfigurationError, EndpointRefused."""
        ...

    def tell(self, measured: Sequence[MeasuredRun], manifest: Mapping[str, Any]) -> None:
        """Take the runs and the manifest of their study; never raises."""
        ...


def run_comparison(
    comparison: Comparison,
    settings: Settings,
    *,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    watch: Watch | None = None,
    kept: Kept = NOTHING_KEPT,
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
    next_look_at = 0.0
    interrupted: KeyboardInterrupt | None = None
    said: dict[str, Any] = {}
    use = MachineUse()
    try:
        # Closed by the block, whatever raises in it: services and workers end before the study is made.
        with contextlib.closing(_runs(comparison, settings, workers, folder, kept, said, use)) as arriving:
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
    said["machine_use"] = use.to_dict(len(measured))
    study = Study.of(measured, comparison_manifest(comparison, settings, complete=complete) | said)
    if kept.replay is not None:
        # What a replay drew is a matter of its tables and of what was recorded; nobody counts while it goes on.
        account = account_of(study, Recording.load(kept.replay))
        study = dataclasses.replace(study, manifest={**study.manifest, "replayed_calls": account.to_dict()})
    if folder is not None and measured:
        # Function-level: drawing is slow to import and not needed to measure.
        from docmind_lab.analysis.plots.files import save_study  # noqa: PLC0415

        save_study(study, folder)
        CellStore(folder / CELLS).remove()
    if telemetry is not None:
        # Now that nothing is measured any more.
        telemetry.tell(measured, study.manifest)
    if interrupted is not None:
        if folder is not None and is_new and not measured:
            _remove_empty(folder)
        raise interrupted
    return study


def _remove_empty(folder: Path) -> None:
    """Remove a folder in which nothing was saved; one that holds something stays."""
    with contextlib.suppress(OSError):
        CellStore(folder / CELLS).remove()
        folder.rmdir()


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
    use: MachineUse,
) -> Generator[Sequence[MeasuredRun]]:
    """The runs as they are done. said: is given what the manifest says of a live study's requests, at its end."""
    keep_in = None if folder is None else folder / CELLS
    if comparison.clock == "wall":
        begun = comparison_manifest(comparison, settings, complete=False)
        with Wire.opened(kept, begun, _run_ids(comparison), keep_in) as wire:
            with contextlib.closing(runs_on_the_wall_clock(comparison, settings, wire.taps, use)) as runs:
                yield from ((run,) for run in wire.finished(runs))
            said |= wire.said()
            wire.close({"complete": not wire.reached} | said)
        return
    virtual = runs_in_virtual_time(comparison, settings, workers=workers, keep_in=keep_in, replay=kept.replay, use=use)
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
