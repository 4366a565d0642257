"""`docmind-lab crash-test`: cut a user's graph at every point at which a deadline can fall."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.experiments.flat_options import nouns_of
from docmind_lab.views.cli.console import load_settings, print_finding, showing_progress
from docmind_lab.views.cli.options import Given, takes

_OPTIONS = ("graph", "agent", "inputs", "context", "config", "resume", "deadline_key", "latencies", "endpoints")


@takes(*_OPTIONS)
def crash_test(
    options: Given,
    checkpointer: Annotated[
        str, typer.Option(help="A function that makes the checkpointer of one run, as module:attribute.")
    ] = "",
    durability: Annotated[str, typer.Option(help="When LangGraph writes checkpoints: sync, async or exit.")] = "async",
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

    values: dict[str, Any] = nouns_of(options) | {"runs": runs, "durability": durability}
    values |= {"alternatives": alternatives or None, "checkpointer": checkpointer or None}
    with showing_progress("runs", "cutting", as_json=as_json) as progress:
        report = run(**values, seed=seed, workers=workers, progress=progress)
    if tests and report.findings:
        write_or_refuse(Path(tests), as_text(report.pytest_functions()))
    print_finding(report.finding(), as_json=as_json, is_wrapped=True)
    if not report.holds:
        raise typer.Exit(1)
