"""`docmind-lab diff A B` and `docmind-lab watch STUDY`: two studies, and production beside one."""

from __future__ import annotations

from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.console import print_finding

REGRESSED = 1
"""The exit code where something is worse, if that was asked for."""


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


def watch(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Folder of the study.")],
    spans: Annotated[
        list[str],
        typer.Option(
            help="File of OTLP JSON, as the OpenTelemetry collector's file exporter writes it, or a folder of them; "
            "may be given several times."
        ),
    ],
    workflow: Annotated[
        str, typer.Option(help="Name of the graph, where the spans are of several; the only one when left out.")
    ] = "",
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit code 1 if production is worse, or nothing could be compared."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON and nothing else.")] = False,
) -> None:
    """Say whether enforced calls in production behave as a study said: by alternative and limit, with intervals.

    The spans are those of enforce(on_result=CallTelemetry("name")). Exit code 0 whatever they say, unless
    --fail-if-worse is given.
    """
    from docmind_lab.findings.study import Study
    from docmind_lab.findings.watch import read_enforced_calls
    from docmind_lab.findings.watch import watch as watch_of

    calls = read_enforced_calls(spans)
    if workflow:
        names = sorted(set(calls["workload"]))
        calls = calls[calls["workload"] == workflow]
        if calls.empty:
            raise ConfigurationError(f"--workflow: no call is of {workflow!r}; choose among {', '.join(names)}")
    result = watch_of(Study.load(study), calls)
    print_finding(result.finding(), as_json=as_json)
    if fail_if_worse and result.verdict in ("regressed", "nothing to compare"):
        raise typer.Exit(REGRESSED)
