"""`docmind-lab show`, `recommend`, `report` and `export`: what is done with a finished study."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.catalogue import with_label
from docmind_lab.core.errors import ConfigurationError, NoSuchRecord
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
    # Function-level: statistics take seconds to import, and --help must not.
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415

    result = load(folder).recommend(target, confidence)
    if as_json:
        rows = json_safe(result.frame.astype(object).to_dict("records"))
        shown = {"target": target, "confidence": confidence, "alternatives": rows, "choice": result.words.choice}
        shown["runs_needed"] = result.words.runs_needed
        typer.echo(json.dumps(shown | {"settings": result.settings, "sentences": result.sentences}, indent=2))
    else:
        out = console()
        for line in result.words.choice:
            out.print(line, style="bold")
        if result.settings:
            out.print(with_label(result.settings), soft_wrap=True, markup=False)
        if how := result.words.how_to_settle(in_python=False):
            out.print(how, soft_wrap=True, markup=False)
        out.print()
        out.print(result.words.title)
        for line in result.sentences:
            out.print(f"• {line}", markup=False)
    if not (result.frame["verdict"] == "reached").any():
        raise typer.Exit(1)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    out: Annotated[str, typer.Option(help="File to write; report.<format> in the study's folder when left out.")] = "",
    as_format: Annotated[
        str, typer.Option("--format", help="html, md or json; by the ending of --out, or html, when left out.")
    ] = "",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write what a study says: its answer, tables with intervals, figures with their numbers, and what it cannot say.

    HTML is one file that needs no network: figures and styles are inside.
    """
    # Function-level: figures and statistics take seconds to import, and --help must not.
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415
    from docmind_lab.interfaces.reports import build_report, write_report  # noqa: PLC0415
    from docmind_lab.interfaces.reports.formats import format_of  # noqa: PLC0415

    target = Path(out) if out else Path(folder) / f"report.{as_format or 'html'}"
    kind = format_of(target, as_format or None)
    written = write_report(build_report(load(folder)), target, kind)
    typer.echo(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    if show:
        webbrowser.open(written.resolve().as_uri())


_FORMATS = ("csv", "duckdb")


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    to: Annotated[str, typer.Option(help="Folder for CSV files, or a file that ends in .duckdb.")] = "",
    as_format: Annotated[
        str, typer.Option("--format", help="csv or duckdb; by the ending of --to when left out.")
    ] = "",
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    metrics_file: Annotated[
        str, typer.Option(help="Write Prometheus metrics of the runs to this file; none when left out.")
    ] = "",
) -> None:
    """Write the tables runs, calls and events, with the manifest and what every column means.

    With --otlp or --metrics-file, tell of its runs and calls in spans and metrics, beside the tables or without them.
    """
    if not (to or otlp or metrics_file):
        raise ConfigurationError("nothing to export to: give --to, --otlp or --metrics-file")
    # Before anything is sent, which cannot be taken back.
    if as_format and as_format not in _FORMATS:
        raise ConfigurationError(f"--format {as_format!r} is not known; there are {', '.join(_FORMATS)}")
    if as_format and not to:
        raise ConfigurationError(f"--format {as_format} is of tables; name where they go too, with --to")
    # Function-level: reading tables takes a second to import, and --help must not.
    from docmind_lab.analysis.export import DUCKDB_SUFFIX, export_csv, export_duckdb  # noqa: PLC0415
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415

    suffix = Path(to).suffix
    if to and not as_format and suffix not in ("", DUCKDB_SUFFIX):
        raise ConfigurationError(
            f"--to {to}: name a folder for CSV files, or a file that ends in {DUCKDB_SUFFIX}; say which with --format"
        )
    study = load(folder)
    if otlp or metrics_file:
        from docmind_lab.interfaces.telemetry import Telemetry  # noqa: PLC0415

        told = Telemetry(spans="otlp" if otlp else None, metrics_file=metrics_file or None).send(study)
        typer.echo(f"told of {told} run{'' if told == 1 else 's'}")
    if not to:
        return
    target = Path(to)
    kind = as_format or ("duckdb" if target.suffix == DUCKDB_SUFFIX else "csv")
    written = (export_duckdb(study, target),) if kind == "duckdb" else export_csv(study, target)
    for path in written:
        typer.echo(str(path))
