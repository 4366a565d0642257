"""`docmind-lab traces import` and `what-if`: what a deadline would have done to runs that were recorded anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.console import console, print_finding
from docmind_lab.views.cli.options import Given, takes

traces = typer.Typer(
    no_args_is_help=True, help="Runs of any agent, read from where they were recorded. No text is kept."
)


_Success = Annotated[
    str,
    typer.Option(
        metavar="SCORE",
        help="Score of the tracing tool that says whether a run was good: correct (0 or 1), or 'quality>=4'.",
    ),
]


@traces.callback()
def _traces() -> None:
    """Runs of any agent, read from where they were recorded. No text is kept."""


@traces.command("import", short_help="Read runs from an export, a recording or a study into one file.")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="An export of OpenTelemetry (OTLP JSON, Jaeger, Tempo), LangSmith, Langfuse or Phoenix, a table of "
            "requests or steps, a study's DIR or a recording's.",
        ),
    ],
    out: Annotated[str, typer.Option(help="File to write, ending in .jsonl.")] = "traces.jsonl",
    as_format: Annotated[str, typer.Option("--format", help="What it is; recognised when left out.")] = "",
    success: _Success = "",
) -> None:
    """Read runs into a file for what-if, and say how many spans were used, how many were left out, and why."""
    from docmind_lab.findings.what_if.trace_formats import import_traces

    if Path(out).suffix != ".jsonl":
        raise ConfigurationError(f"--out must end in .jsonl: got {out}")
    result = import_traces(source, as_format or None, success or None)
    path = result.write(out)
    typer.echo(f"{result}\n\nIn {path}; next: docmind-lab what-if {path}")


@takes("server")
def what_if(
    options: Given,
    source: Annotated[
        str, typer.Argument(metavar="TRACES", help="A .jsonl file of traces import, or anything that it reads.")
    ],
    timeouts: Annotated[
        str,
        typer.Option("--timeouts", metavar="SECONDS,…", help="Decision timeouts; a dozen of them when left out."),
    ] = "",
    alternatives: Annotated[
        str, typer.Option(help="Letters, levels or variants, as A,B:drain,D; all that a trace can say of.")
    ] = "",
    target: Annotated[float, typer.Option(help="Share of runs that should be answered in time.")] = 0.95,
    price: Annotated[
        str, typer.Option(metavar="INPUT/OUTPUT", help="Price of a million tokens, for what late work costs.")
    ] = "",
    success: _Success = "",
    plot: Annotated[str, typer.Option(help="A .png file to draw the frontier in.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")] = False,
) -> None:
    """Say what would have become of recorded runs at other decision timeouts, under each alternative.

    Nothing is run: the calls of each run are replayed, and cut as the alternative would have cut them.
    """
    from docmind_lab.core.budgets import Price
    from docmind_lab.findings.what_if.trace_formats import import_traces
    from docmind_lab.findings.what_if.what_if import what_if as answer

    if plot and Path(plot).suffix != ".png":
        raise ConfigurationError(f"--plot must end in .png: got {plot}")
    result = answer(
        import_traces(source, success=success or None),
        _seconds(timeouts) or None,
        alternatives or None,
        options.get("server", "stops"),
        price=Price.parse(price) if price else None,
    )
    if plot:
        from docmind_lab.views import plots

        plots.save_png(plots.what_if_frontier(result, target, ax=plots.OFFSCREEN)[0], plot)
    print_finding(result.finding(target), as_json=as_json)
    if plot and not as_json:
        console().print(f"\nIn {plot}.", markup=False)


def _seconds(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ConfigurationError(f"--timeouts must be seconds, as in 30,60,120: got {text!r}") from error
