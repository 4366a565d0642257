"""`docmind-lab traces import`, `what-if`, `watchdog` and `profile`: what was measured or recorded anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.console import console, print_finding
from docmind_lab.views.cli.fields_as_options import Given, takes

traces = typer.Typer(no_args_is_help=True)


@traces.callback()
def _traces() -> None:
    """Runs of any agent, read from where they were recorded. No text is kept."""


@traces.command("import", short_help="Read runs from an export, a recording or a study into one file.")
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="An export of OpenTelemetry (OTLP JSON, Tempo), LangSmith, Langfuse or Phoenix, a "
            "study's DIR or a recording's.",
        ),
    ],
    out: Annotated[str, typer.Option(help="File to write, ending in .jsonl.")] = "traces.jsonl",
) -> None:
    """Read runs into a file for what-if, and say how many spans were used, how many were left out, and why."""
    from docmind_lab.findings.what_if.trace_formats import import_traces

    if Path(out).suffix != ".jsonl":
        raise ConfigurationError(f"--out must end in .jsonl: got {out}")
    result = import_traces(source)
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
    plot: Annotated[str, typer.Option(help="A .png file to draw the frontier in.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON and nothing else.")] = False,
) -> None:
    """Say what would have become of recorded runs at other decision timeouts, under each alternative.

    Nothing is run: the calls of each run are replayed, and cut as the alternative would have cut them.
    """
    from docmind_lab.findings.what_if.trace_formats import import_traces
    from docmind_lab.findings.what_if.what_if import what_if as answer

    _check_png(plot)
    result = answer(
        import_traces(source),
        _seconds(timeouts) or None,
        alternatives or None,
        options.get("server", "stops"),
    )
    print_finding(result.finding(target), as_json=as_json)
    _draw(plot, lambda plots: plots.what_if_frontier(result, target, ax=plots.OFFSCREEN)[0], as_json=as_json)


def watchdog(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STUDY_OR_TRACES",
            help="Folder of a study, a .jsonl file of traces import, or anything that it reads.",
        ),
    ],
    false_kills: Annotated[
        float, typer.Option(help="Share of healthy calls that all limits together may kill, between 0 and 1.")
    ] = 0.01,
    role: Annotated[str, typer.Option(help="Only the calls of this node.")] = "",
    hung_after: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Leave calls out that were cut after so long: they hung.")
    ] = None,
    plot: Annotated[str, typer.Option(help="A .png file to draw the limits in.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print limits and curves as JSON and nothing else.")] = False,
) -> None:
    """Say which limits of model calls notice a hang soonest, and still let healthy calls end.

    First token, idle and total, with the code for LangGraph and openai. Too few calls are said, with how many it takes.
    """
    from docmind_lab.findings.watchdog import watchdog as limits_of

    _check_png(plot)
    result = limits_of(source, false_kills, role=role, hung_after_s=hung_after)
    print_finding(result.finding(), as_json=as_json)
    _draw(plot, lambda plots: plots.false_kills(result, ax=plots.OFFSCREEN), as_json=as_json)


def _draw(plot: str, figure: Callable[[Any], Any], *, as_json: bool) -> None:
    """Draw a figure in a file, if one is named."""
    if not plot:
        return
    from docmind_lab.views import plots

    plots.save_png(figure(plots), plot)
    if not as_json:
        console().print(f"\nIn {plot}.")


def _check_png(plot: str) -> None:
    if plot and Path(plot).suffix != ".png":
        raise ConfigurationError(f"--plot must end in .png: got {plot}")


def _seconds(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise ConfigurationError(f"--timeouts must be seconds, as in 30,60,120: got {text!r}") from error


def profile(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A .csv, .jsonl, .parquet or OTLP .json file with a row for each call, an export of LangSmith, "
            "Langfuse or Phoenix.",
        ),
    ],
    out: Annotated[str, typer.Option(help="File to write, ending in .json.")] = "profile.json",
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FIELD=COLUMN[:UNIT]",
            help="Which column is which, as latency_s=duration_ms:ms; once for each field: latency_s, first_token_s, "
            "output_tokens, kind, outcome, error, model, node, session (the run of a call). "
            "Units: s, ms, us, ns.",
        ),
    ] = None,
    ok: Annotated[
        list[str] | None,
        typer.Option(help="An outcome that means a complete answer; all others are then calls that were cut."),
    ] = None,
    name: Annotated[str, typer.Option(help="The profile's name in tables; that of the source when left out.")] = "",
    model: Annotated[str, typer.Option(help="Only the calls of this model.")] = "",
    node: Annotated[str, typer.Option(help="Only the calls of this node of a graph.")] = "",
    slots: Annotated[int | None, typer.Option(help="Model calls served at once; no limit when left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON and nothing else.")] = False,
) -> None:
    """Make a latency profile of calls that were measured, with what fits badly and what was not observed.

    A call that ended by a timeout counts as longer than that. Use the file as --latencies FILE.json, or FILE.json/10.
    """
    from docmind_lab.statistics.latency.profile import LatencyProfile

    fitted = LatencyProfile.fit(
        source,
        _columns(mapped or []),
        ok=ok or (),
        model=model or None,
        node=node or None,
        name=name or None,
        slots=slots,
    )
    written = fitted.save(out)
    if as_json:
        typer.echo(json.dumps(fitted.to_dict(), indent=2))
        return
    typer.echo(f"{fitted}\n\n{fitted.source}. {fitted.description}\n")
    typer.echo(f"In {written}; use it as --latencies {written}")


def _columns(mapped: list[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for text in mapped:
        field, equals, column = text.partition("=")
        if not (field and equals and column):
            raise ConfigurationError(f"--map {text!r} is not FIELD=COLUMN[:UNIT], as in latency_s=duration_ms:ms")
        if field in columns:
            raise ConfigurationError(f"--map names {field} twice: {columns[field]!r} and {column!r}; leave one out")
        columns[field] = column
    return columns
