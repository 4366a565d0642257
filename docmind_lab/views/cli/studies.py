"""`docmind-lab show`, `recommend` and `report`: what is done with a finished study."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.errors import NoSuchRecord
from docmind_lab.views.cli.console import console, json_safe, print_finding

if TYPE_CHECKING:
    from docmind_lab.findings.study import Study

RESULTS = "results"


def show(
    run_id: Annotated[str, typer.Argument(help="Id of the run, or how it ends, such as hard_timeout-7.")],
    study: Annotated[
        str, typer.Option(help="Folder of the study; the newest one under results/ that has the run when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's rows as JSON and nothing else.")] = False,
) -> None:
    """Show what happened in one run of a study: its calls on a line of time, the deadline, and what went on after."""
    from docmind_lab.findings.run_timeline import RunTimeline

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
    from docmind_lab.findings.study import MANIFEST, Study

    if folder:
        return Study.load(folder)
    manifests = sorted(Path(RESULTS).glob(f"*/{MANIFEST}"), reverse=True)
    for manifest in manifests:
        study = Study.load(manifest.parent)
        if any(str(known).endswith(run_id) for known in study.runs["run_id"]):
            return study
    looked = f"none of the {len(manifests)} studies" if manifests else "no study"
    raise NoSuchRecord(
        f"{looked} under {RESULTS}/ has a run {run_id!r}; name its folder with --study, or run docmind-lab compare"
    )


def recommend(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    target: Annotated[
        float, typer.Option(help="Share of runs that should be answered in time, above 0, below 1.")
    ] = 0.95,
    confidence: Annotated[float, typer.Option(help="How sure to be of it, above 0, below 1.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print the recommendation as JSON and nothing else.")] = False,
) -> None:
    """Name the smallest decision timeout that is sure to have the target answered in time, for each alternative.

    Or say how many more runs it takes to be sure. Exit code 1 where nothing can be recommended.
    """
    from docmind_lab.findings.study import Study

    result = Study.load(folder).recommend(target, confidence)
    print_finding(result.finding(in_python=False), as_json=as_json)
    if not (result.frame["verdict"] == "reached").any():
        raise typer.Exit(1)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    out: Annotated[
        str, typer.Option(help="File to write, ending in .html; report.html in the study's folder when left out.")
    ] = "",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write what a study says: its answer, tables with intervals, figures with their numbers, and what it cannot say.

    It is one HTML page that needs no network: figures and styles are inside.
    """
    from docmind_lab.findings.study import Study
    from docmind_lab.views.reports import build_report, write_report

    written = write_report(build_report(Study.load(folder)), out or Path(folder) / "report.html")
    typer.echo(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    if show:
        webbrowser.open(written.resolve().as_uri())
