"""`docmind-lab report DIR`: a study as one page."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer


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
    from docmind_lab.interfaces.reports.files import format_of  # noqa: PLC0415

    target = Path(out) if out else Path(folder) / f"report.{as_format or 'html'}"
    kind = format_of(target, as_format or None)
    written = write_report(build_report(load(folder)), target, kind)
    typer.echo(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    if show:
        webbrowser.open(written.resolve().as_uri())
