"""`docmind-lab show RUN_ID`: what happened in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.errors import NoSuchRecord
from docmind_lab.interfaces.cli.console import console, json_safe

if TYPE_CHECKING:
    from docmind_lab.analysis.study import Study

RESULTS = "results"


def show(
    run_id: Annotated[str, typer.Argument(help="Id of the run, or how it ends, such as hard_timeout-7.")],
    study: Annotated[
        str, typer.Option(help="Folder of the study; the newest one under results/ that has the run when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's rows as JSON and nothing else.")] = False,
) -> None:
    """Show what happened in one run of a study: its calls on a line of time, the deadline, and what went on after."""
    # Function-level: reading tables takes a second to import, and --help must not.
    from docmind_lab.analysis.run_timeline import RunTimeline  # noqa: PLC0415

    timeline = RunTimeline.of(_study_with(run_id, study), run_id)
    if as_json:
        rows = {"run": timeline.run, "calls": timeline.calls, "events": timeline.events}
        typer.echo(json.dumps(json_safe(rows), indent=2))
        return
    out = console()
    out.print(timeline.title(), style="bold", soft_wrap=True)
    out.print()
    for line in timeline.lines(out.width):
        out.print(line, markup=False, soft_wrap=True)
    out.print()
    for line in timeline.notes():
        out.print(line, markup=False, soft_wrap=True)


def _study_with(run_id: str, folder: str) -> Study:
    from docmind_lab.analysis.study import MANIFEST  # noqa: PLC0415
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415

    if folder:
        return load(folder)
    manifests = sorted(Path(RESULTS).glob(f"*/{MANIFEST}"), reverse=True)
    for manifest in manifests:
        study = load(manifest.parent)
        if any(str(known).endswith(run_id) for known in study.runs["run_id"]):
            return study
    looked = f"none of the {len(manifests)} studies" if manifests else "no study"
    raise NoSuchRecord(
        f"{looked} under {RESULTS}/ has a run {run_id!r}; name its folder with --study, or run docmind-lab compare"
    )
