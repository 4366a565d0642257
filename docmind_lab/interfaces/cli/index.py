"""`docmind-lab index DIR`: a folder of documents as a searchable index."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from docmind_lab.interfaces.cli.console import ProgressBar

SOME_FAILED = 1


def index(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Folder of .md, .txt, .rst, .html and .pdf files.")],
    out: Annotated[str, typer.Option(help="The index folder; DIR/.docmind when left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
) -> None:
    """Index a folder of documents, or bring its index up to date; only what has changed is read again.

    A document that cannot be read is named with the reason; the others are indexed, and the exit code is 1.
    Interrupted or killed, the index is whole: what was finished is kept.
    """
    from docmind_lab.docmind.documents import index_folder  # noqa: PLC0415 - slow, and --help does not need it

    bar = ProgressBar("documents", "reading", shown=not as_json, at_once=False)
    try:
        report = index_folder(directory, out or None, progress=bar.show)
    finally:
        bar.close()
    if as_json:
        problems = [{"path": p.path, "reason": p.reason, "remedy": p.remedy} for p in report.problems]
        counts = {"documents": report.documents, "passages": report.passages, "added": report.added}
        counts |= {"changed": report.changed, "unchanged": report.unchanged, "removed": report.removed}
        typer.echo(json.dumps({"folder": str(report.folder), **counts, "problems": problems}, indent=2))
    else:
        typer.echo(f"{report} · {report.folder}")
        for problem in report.problems:
            typer.echo(f"docmind-lab: {problem}", err=True)
    if report.problems:
        raise typer.Exit(SOME_FAILED)
