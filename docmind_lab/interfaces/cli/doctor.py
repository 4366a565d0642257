"""`docmind-lab doctor`: checks versions, settings and endpoints, or the deadline of a user's graph."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError, NotSimulated
from docmind_lab.core.whole_files import as_text, write_whole
from docmind_lab.interfaces.cli.console import ProgressBar, console, json_safe, load_settings, prints_on_stderr
from docmind_lab.interfaces.cli.options import of_graph

if TYPE_CHECKING:
    from docmind_lab.network.endpoints import Check
    from docmind_lab.services.unanswered import Unanswered

_MARKS = {"ok": "ok", "failed": "FAILED", "note": "note"}
_OF_A_GRAPH = "With --graph: "
# As long as a comparison gives a program.
_PROGRAM_LIMIT_S = 10.0


def doctor(
    graph: Annotated[
        str, typer.Option(help="Lint the deadline of your own LangGraph graph, as module:attribute, and nothing else.")
    ] = "",
    agent: Annotated[
        str, typer.Option(help="The same of your own agent of any framework, or function, as module:attribute.")
    ] = "",
    command: Annotated[
        str, typer.Option(help="Check your own program, such as 'node agent.mjs': one question on simulated services.")
    ] = "",
    inputs: Annotated[
        str, typer.Option(help=f"{_OF_A_GRAPH}file of its inputs: one JSON object, or text, in each line.")
    ] = "",
    decision_timeout: Annotated[
        float | None, typer.Option(help=f"{_OF_A_GRAPH}the budget of one run, in seconds; 20 when left out.")
    ] = None,
    slack: Annotated[
        float | None,
        typer.Option(help=f"{_OF_A_GRAPH}seconds past the deadline that still keep it; 0.15 when left out."),
    ] = None,
    alternatives: Annotated[
        str, typer.Option(help=f"{_OF_A_GRAPH}those in question, such as A,E,C:propagate; all when left out.")
    ] = "",
    deadline_key: Annotated[
        str, typer.Option(help=f"{_OF_A_GRAPH}key of its input that takes the deadline; deadline_ts when left out.")
    ] = "",
    context: Annotated[str, typer.Option(help=f"{_OF_A_GRAPH}context of its runs, as a JSON object.")] = "",
    config: Annotated[
        str,
        typer.Option(help=f'{_OF_A_GRAPH}configuration of its runs, or what is under "configurable" there, as JSON.'),
    ] = "",
    store: Annotated[
        str, typer.Option(help=f"{_OF_A_GRAPH}a function that makes the store of one run, as module:attribute.")
    ] = "",
    resume: Annotated[
        list[str] | None,
        typer.Option(help=f"{_OF_A_GRAPH}what an interrupt is answered with, as JSON or text; may be repeated."),
    ] = None,
    endpoints: Annotated[
        str, typer.Option(help=f"{_OF_A_GRAPH}file with simulated endpoints of other services that it calls (TOML).")
    ] = "",
    write_endpoints: Annotated[
        str,
        typer.Option(help=f"{_OF_A_GRAPH}file to which rows are added for what no simulated service answers (TOML)."),
    ] = "",
    verbose: Annotated[
        bool, typer.Option(help=f"{_OF_A_GRAPH}also print each node, the run behind each finding, and each request.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON and nothing else.")] = False,
) -> None:
    """Check versions, settings and endpoints, and how late this machine's timers are. Exit code 1: something failed.

    With --graph: say which alternatives keep the deadline on it, and what stands in the way. Exit code 1: none does, or
    answers were made up, since no simulated service gives them.
    With --command: say whether a program is found, and what it does with one question.
    """
    of_a_graph = {
        "--inputs": inputs,
        "--decision-timeout": decision_timeout is not None,
        "--slack": slack is not None,
        "--alternatives": alternatives,
        "--deadline-key": deadline_key,
        "--context": context,
        "--config": config,
        "--store": store,
        "--resume": resume,
        "--endpoints": endpoints,
        "--write-endpoints": write_endpoints,
        "--verbose": verbose,
    }
    named = [option for option, name in (("--agent", agent), ("--graph", graph), ("--command", command)) if name]
    if len(named) > 1:
        raise ConfigurationError(f"{' and '.join(named)} name {len(named)} systems; leave one out")
    if command:
        for name, is_given in of_a_graph.items():
            if is_given and name not in ("--inputs", "--decision-timeout"):
                raise ConfigurationError(f"{name} is not for a program, which --command names; leave it out")
        _check_program(command, inputs, decision_timeout, as_json)
        return
    if agent:
        graph = f"agent:{agent}"
    if not graph:
        for name, is_given in of_a_graph.items():
            if is_given:
                raise ConfigurationError(f"{name} is for a graph of your own: name it with --graph")
        _run_checks(as_json)
        return
    options: dict[str, Any] = {"decision_timeout_s": decision_timeout, "slack_s": slack}
    options |= {"alternatives": alternatives or None, "deadline_key": deadline_key or None, "store": store or None}
    options["endpoints"] = endpoints or None
    options |= of_graph(context, config, resume)
    given = {name: value for name, value in options.items() if value is not None}
    _lint(graph, inputs, as_json, verbose, write_endpoints, given)


def _check_program(command: str, inputs: str, limit_s: float | None, as_json: bool) -> None:
    if not inputs:
        raise ConfigurationError("--command without --inputs: name a file with one question in each line")
    load_settings()
    from docmind_lab.interfaces.program_diagnosis import diagnose_program  # noqa: PLC0415 - slow, --help needs it not

    _print_checks(diagnose_program(command, inputs, _PROGRAM_LIMIT_S if limit_s is None else limit_s), as_json)


def _run_checks(as_json: bool) -> None:
    from docmind_lab.interfaces.diagnosis import diagnose  # noqa: PLC0415 - slow, and --help does not need it

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


def _lint(graph: str, inputs: str, as_json: bool, verbose: bool, write_endpoints: str, options: dict[str, Any]) -> None:
    if not inputs:
        raise ConfigurationError("--graph without --inputs: name a file with one input in each line")
    load_settings()
    from docmind_lab.experiments.lint import lint_graph  # noqa: PLC0415 - slow, and --help does not need it
    from docmind_lab.experiments.lint.report import lines_of, nodes_table  # noqa: PLC0415 - slow, and --help does not need it

    bar = ProgressBar("runs", "measuring", shown=not as_json)
    try:
        with prints_on_stderr(on_terminal=as_json):
            report = lint_graph(graph, inputs, progress=bar.show, **options)
    except NotSimulated as error:
        bar.close()
        _add_rows(write_endpoints, error.requests)
        raise
    finally:
        bar.close()
    if as_json:
        typer.echo(json.dumps(json_safe(report.to_dict()), indent=2))
    else:
        out = console()
        if verbose:
            out.print(nodes_table(report))
            out.print()
        for line in lines_of(report, verbose=verbose):
            out.print(line, markup=False, soft_wrap=True)
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
