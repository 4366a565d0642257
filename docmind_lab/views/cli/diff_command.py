"""`docmind-lab diff A B`: what changed between two studies."""

from __future__ import annotations

from typing import Annotated

import typer

from docmind_lab.views.cli.console import print_finding

REGRESSED = 1


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="Folder of the first study.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Folder of the second study.")],
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit code 1 if a corrected difference is for the worse, or if there are too few runs to show one.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON and nothing else.")] = False,
) -> None:
    """Compare two studies: what their arms did, B minus A, then design, settings, versions and machine.

    Exit code 0 whatever differs, unless --fail-on-regression is given.
    """
    from docmind_lab.findings.diff import diff as diff_of
    from docmind_lab.findings.study import Study

    result = diff_of(Study.load(before), Study.load(after))
    print_finding(result.finding(), as_json=as_json)
    if fail_on_regression and result.verdict != "no regression shown":
        raise typer.Exit(REGRESSED)
