"""`docmind-lab doctor`: checks versions, settings and endpoints, or the deadline of a user's graph."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.whole_files import as_text, write_whole
from docmind_lab.experiments.flat_options import nouns_of
from docmind_lab.views.cli.console import console, load_settings, print_finding, showing_progress
from docmind_lab.views.cli.options import Given, takes

if TYPE_CHECKING:
    from docmind_lab.network.live_endpoints import Check
    from docmind_lab.services.unanswered import Unanswered

_MARKS = {"ok": "ok", "failed": "FAILED", "note": "note"}
_OF_RUNS = ("context", "config", "store", "resume", "deadline_key", "latencies", "endpoints")


@takes("graph", "agent", "inputs", *_OF_RUNS)
def doctor(
    options: Given,
    here: typer.Context,
    decision_timeout: Annotated[
        float | None, typer.Option(help="The budget of one run, in seconds; 20 when left out.")
    ] = None,
    slack: Annotated[
        float | None,
        typer.Option(help=f"Seconds past the deadline that still keep it; {HELD_WITHIN_S:g} when left out."),
    ] = None,
    alternatives: Annotated[
        str, typer.Option(help="Those in question, such as A,E,C:propagate; all when left out.")
    ] = "",
    write_endpoints: Annotated[
        str, typer.Option(help="File to which rows are added for what no simulated service answers (TOML).")
    ] = "",
    verbose: Annotated[
        bool, typer.Option(help="Also print each node, the run behind each finding, and each request.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON and nothing else.")] = False,
) -> None:
    """Check versions, settings and endpoints, and how late this machine's timers are. Exit code 1: something failed.

    With --graph or --agent: say which alternatives keep the deadline on it, and what stands in the way.
    Exit code 1: none does, or answers were made up, since no simulated service gives them.
    """
    if not {"graph", "agent"} & options.keys():
        sources = {str(each.opts[0]): here.get_parameter_source(str(each.name)) for each in here.command.params}
        for option, source in sources.items():
            if source is not None and source.name != "DEFAULT" and option != "--json":
                raise ConfigurationError(f"{option} is for a graph of your own: name it with --graph")
        _run_checks(as_json)
        return
    options["latencies"] = ",".join(options["latencies"]) if "latencies" in options else None
    values = {"decision_timeout_s": decision_timeout, "slack_s": slack, "alternatives": alternatives or None}
    arguments = nouns_of(options) | {name: value for name, value in values.items() if value is not None}
    _examine(arguments, as_json, verbose, write_endpoints)


def _run_checks(as_json: bool) -> None:
    from docmind_lab.views.diagnosis import diagnose  # noqa: PLC0415 - slow, and --help does not need it

    _print_checks(diagnose(load_settings()), as_json)


def _print_checks(arriving: Iterator[Check], as_json: bool) -> None:
    checks = []
    out = console()
    for check in arriving:
        checks.append(check)
        if not as_json:
            out.print(f"{_MARKS[check.verdict]:<7} {check.subject:<48} {check.finding}", markup=False, soft_wrap=True)
            if check.remedy:
                out.print(f"{'':<7} {'':<48} → {check.remedy}", markup=False, soft_wrap=True)
    failed = [check for check in checks if check.verdict == "failed"]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        out.print(f"\n{len(checks) - len(failed)} of {len(checks)} checks are well." if failed else "\nAll is well.")
    if failed:
        raise typer.Exit(1)


def _examine(arguments: dict[str, Any], as_json: bool, verbose: bool, write_endpoints: str) -> None:
    load_settings()
    from docmind_lab.experiments.lint import doctor as examine  # noqa: PLC0415 - slow, and --help does not need it

    try:
        with showing_progress("runs", "measuring", as_json=as_json) as progress:
            report = examine(**arguments, progress=progress)
    except NotSimulated as error:
        _add_rows(write_endpoints, error.requests)
        raise
    print_finding(report.finding(verbose=verbose), as_json=as_json, is_wrapped=True)
    _add_rows(write_endpoints, report.unanswered)
    if not report.is_clean:
        raise typer.Exit(1)


def _add_rows(file: str, requests: Sequence[Unanswered]) -> None:
    """Add rows to a file for requests that nothing answers, and say so on standard error; make it if need be."""
    if not file:
        return
    if not requests:
        typer.echo(f"docmind-lab: every request was answered, so {file} is not written", err=True)
        return
    from docmind_lab.services.endpoints import read_endpoints  # noqa: PLC0415 - slow, and --help does not need it
    from docmind_lab.services.unanswered import rows_to_fill_in  # noqa: PLC0415 - the same

    place = Path(file)
    if place.exists():
        read_endpoints(place)
    there = f"{place.read_text(encoding='utf-8')}\n" if place.exists() else ""
    write_whole(place, as_text(there + rows_to_fill_in(requests)))
    typer.echo(f"docmind-lab: {file} has the rows to fill in", err=True)
