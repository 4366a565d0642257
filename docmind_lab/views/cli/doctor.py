"""`docmind-lab doctor` and `crash-test`: versions, settings and endpoints, and a user's graph under a deadline."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.experiments.world_options import nouns_of
from docmind_lab.views.cli.console import console, load_settings, print_finding, showing_progress, whole
from docmind_lab.views.cli.fields_as_options import Given, takes

if TYPE_CHECKING:
    from docmind_lab.services.endpoint_shape import Unanswered

OF_RUNS = ("context", "config", "store", "resume", "deadline_key", "latencies", "endpoints")


@takes("graph", "agent", "inputs", *OF_RUNS)
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
    timeouts: Annotated[
        bool, typer.Option(help="Instead: every limit in force, by design and measured by a hang and a trickle.")
    ] = False,
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
    With --timeouts: print the limits of its run, nodes and clients. Exit code 1: some do not fit into each other.
    """
    if not {"graph", "agent"} & options.keys():
        sources = {str(each.opts[0]): here.get_parameter_source(str(each.name)) for each in here.command.params}
        for option, source in sources.items():
            if source is not None and source.name != "DEFAULT" and option != "--json":
                raise ConfigurationError(f"{option} is for a graph of your own: name it with --graph")
        _run_checks(as_json)
        return
    of_lint = {
        "--slack": slack is not None,
        "--alternatives": alternatives,
        "--write-endpoints": write_endpoints,
        "--verbose": verbose,
    }
    if timeouts and (others := [name for name, value in of_lint.items() if value]):
        raise ConfigurationError(f"--timeouts judges no alternative: leave {', '.join(others)} out")
    options["latencies"] = ",".join(options["latencies"]) if "latencies" in options else None
    values = {"decision_timeout_s": decision_timeout, "slack_s": slack, "alternatives": alternatives or None}
    arguments = nouns_of(options) | {name: value for name, value in values.items() if value is not None}
    if timeouts:
        _print_timeouts(arguments, as_json)
    else:
        _examine(arguments, as_json, verbose, write_endpoints)


def _run_checks(as_json: bool) -> None:
    from docmind_lab.views.machine_checks import diagnose  # noqa: PLC0415 - slow, and --help does not need it

    checks, out = [], console()
    for check in diagnose(load_settings()):
        checks.append(check)
        if not as_json:
            mark = "FAILED" if check.verdict == "failed" else check.verdict
            out.print(f"{mark:<7} {check.subject:<48} {check.finding}", soft_wrap=True)
            if check.remedy:
                out.print(f"{'':<7} {'':<48} → {check.remedy}", soft_wrap=True)
    failed = [check for check in checks if check.verdict == "failed"]
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        out.print(f"\n{len(checks) - len(failed)} of {len(checks)} checks are well." if failed else "\nAll is well.")
    if failed:
        raise typer.Exit(1)


def _print_timeouts(arguments: dict[str, Any], as_json: bool) -> None:
    load_settings()
    from docmind_lab.experiments.doctor.timeouts import timeouts as examine  # noqa: PLC0415 - slow, as above

    with showing_progress("runs", "measuring", as_json=as_json) as bar:
        report = examine(**arguments, progress=bar.show)
    print_finding(report.finding(), as_json=as_json, is_wrapped=True)
    if report.inversions:
        raise typer.Exit(1)


def _examine(arguments: dict[str, Any], as_json: bool, verbose: bool, write_endpoints: str) -> None:
    load_settings()
    from docmind_lab.experiments.doctor import doctor as examine  # noqa: PLC0415 - slow, and --help does not need it

    try:
        with showing_progress("runs", "measuring", as_json=as_json) as bar:
            report = whole(examine(**arguments, progress=bar.show))
    except NotSimulated as error:
        add_rows(write_endpoints, error.requests)
        raise
    print_finding(report.finding(verbose=verbose), as_json=as_json, is_wrapped=True)
    add_rows(write_endpoints, report.unanswered)
    if not report.is_clean:
        raise typer.Exit(1)


def add_rows(file: str, requests: Sequence[Unanswered]) -> None:
    """Add rows to a file for requests that nothing answers, and say so on standard error; make it if need be."""
    if not file:
        return
    if not requests:
        typer.echo(f"docmind-lab: every request was answered, so {file} is not written", err=True)
        return
    from docmind_lab.services.endpoints import write_rows  # noqa: PLC0415 - slow, and --help does not need it

    write_rows(file, requests)
    typer.echo(f"docmind-lab: {file} has the rows to fill in", err=True)


_OPTIONS = ("graph", "agent", "inputs", "context", "config", "resume", "deadline_key", "latencies", "endpoints")


@takes(*_OPTIONS)
def crash_test(
    options: Given,
    checkpointer: Annotated[
        str, typer.Option(help="A function that makes the checkpointer of one run, as module:attribute.")
    ] = "",
    durability: Annotated[str, typer.Option(help="When LangGraph writes checkpoints: sync, async or exit.")] = "async",
    repair: Annotated[bool, typer.Option(help="Mend each thread after its cut, before it goes on.")] = False,
    alternatives: Annotated[
        str,
        typer.Option(help="What cuts a run, such as A,kill; A,D,E,kill when left out (A,C,E,kill if async only)."),
    ] = "",
    runs: Annotated[int | None, typer.Option(help="Cut so many runs at the most; all when left out.")] = None,
    seed: Annotated[int, typer.Option(help="Keys every draw.")] = 7,
    workers: Annotated[int | None, typer.Option(help="Processes; one on each core when left out.")] = None,
    tests: Annotated[str, typer.Option(help="Write a test for each finding to this file, for pytest.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON and nothing else.")] = False,
) -> None:
    """Cut your own graph at every point at which a deadline can fall, go on with its thread, and judge what is left.

    Everything happens in virtual time, on simulated services. Exit code 0: every invariant held; 1: one did not, or
    the graph could not be measured; 2: bad usage.
    """
    if not {"graph", "agent"} & options.keys():
        raise ConfigurationError("--graph is missing: name a graph and its inputs, with --graph and --inputs")
    options["latencies"] = ",".join(options["latencies"]) if "latencies" in options else None
    load_settings()
    from docmind_lab.experiments.crash_test import crash_test as run  # noqa: PLC0415 - slow, --help needs it not

    values: dict[str, Any] = nouns_of(options) | {"runs": runs, "durability": durability, "repair": repair}
    values |= {"alternatives": alternatives or None, "checkpointer": checkpointer or None}
    with showing_progress("runs", "cutting", as_json=as_json) as bar:
        report = whole(run(**values, seed=seed, workers=workers, progress=bar.show))
    if tests and report.findings:
        write_or_refuse(Path(tests), as_text(report.pytest_functions()))
    print_finding(report.finding(), as_json=as_json, is_wrapped=True)
    if not report.holds:
        raise typer.Exit(1)
