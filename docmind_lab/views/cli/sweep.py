"""`docmind-lab sweep STUDY.toml`: a designed experiment."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.text import count_of
from docmind_lab.views.cli.console import console, load_settings, showing_progress, starting, whole
from docmind_lab.views.cli.printing import print_study, study_as_json

if TYPE_CHECKING:
    from docmind_lab.experiments.sweeps.study_design import StudyDesign
    from docmind_lab.findings.study import Study


def sweep(
    study: Annotated[str, typer.Argument(help="TOML file of the study; examples/ has some.", metavar="STUDY.toml")],
    out: Annotated[
        str,
        typer.Option(
            help="Folder for cells and tables; results/<study id> when left out. Run again, it goes on from there."
        ),
    ] = "",
    workers: Annotated[
        int | None, typer.Option(help="Processes in virtual time; one on each core when left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Run every combination of a study's factors, repeated; finished parts are kept, and a second call goes on."""
    with starting(is_shown=not as_json):
        from docmind_lab.experiments.sweeps.study_design import StudyDesign
        from docmind_lab.experiments.sweeps.sweep_run import sweep as run_sweep

    settings = load_settings()
    design = StudyDesign.read(study)
    folder = Path(out or f"results/{design.study_id}")
    if not as_json:
        _announce(design)

    def finished(runs: int) -> str:
        there = f"; {runs} of {design.total_runs} runs are in {folder}: run the same command again, and it goes on"
        return f"{there} from there" if folder.exists() else "; no part of the study was finished, nothing is saved"

    with showing_progress("runs", "measuring", as_json=as_json, when_interrupted=finished) as bar:
        done = whole(run_sweep(design, out=folder, workers=workers, settings=settings, progress=bar.show))
    failed = done.manifest["failed_cells"]
    drawn = _file_names(done, folder)
    if as_json:
        typer.echo(json.dumps(study_as_json(done, folder) | {"failed_cells": failed}, indent=2))
    else:
        print_study(
            done,
            f"In {folder}: the tables, the manifest, {', '.join(drawn)}. For a page of it: docmind-lab report {folder}",
        )
    for cell in failed:
        typer.echo(f"docmind-lab: cell {cell['cell']} failed twice: {cell['reason']}", err=True)
    if failed:
        raise typer.Exit(1)


def _file_names(study: Study, folder: Path) -> list[str]:
    """Return the names of the files beside the tables: the summary and the figures."""
    from docmind_lab.core.whole_files import as_text, write_whole
    from docmind_lab.views.plots import save_figures

    names = [write_whole(folder / "summary.md", as_text(study.report())).name]
    # A sweep over other factors has no figure of all its runs.
    with contextlib.suppress(ConfigurationError):
        names += [path.name for path in save_figures(study, folder)]
    return names


def _announce(design: StudyDesign) -> None:
    planned = design.plan
    out = console()
    combinations = len(planned.combinations)
    out.print(
        f"{design.study_id}: {count_of(combinations, 'combination')} × {count_of(design.repeats, 'repeat')} = "
        f"{count_of(design.total_runs, 'run')}"
    )
    for reason in planned.left_out:
        out.print(f"Left out: {reason}")
