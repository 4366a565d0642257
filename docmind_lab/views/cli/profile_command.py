"""`docmind-lab profile SOURCE`: measured latencies as a profile for every --latencies."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError


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
