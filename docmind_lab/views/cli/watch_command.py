"""`docmind-lab watch STUDY --spans FILE`: whether production behaves as a study said."""

from __future__ import annotations

from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.console import print_finding

WORSE = 1


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
    from docmind_lab.findings.enforced_calls import read_enforced_calls
    from docmind_lab.findings.study import Study
    from docmind_lab.findings.watch import watch as watch_of

    calls = read_enforced_calls(spans)
    if workflow:
        names = sorted(set(calls["workload"]))
        calls = calls[calls["workload"] == workflow]
        if calls.empty:
            raise ConfigurationError(f"--workflow: no call is of {workflow!r}; choose among {', '.join(names)}")
    result = watch_of(Study.load(study), calls)
    print_finding(result.finding(), as_json=as_json)
    if fail_if_worse and (result.is_worse or not result.verdicts):
        raise typer.Exit(WORSE)
