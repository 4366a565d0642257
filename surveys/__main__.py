"""The surveys behind docs/does-it-stop.md: agents of many frameworks, and gateways.

python -m surveys agents --repeats 2 --out data/agent_probes
python -m surveys page                         # the rows of data/agent_probes → page and figure
python -m surveys gateways --out mine.csv
python -m surveys servers transformers         # a model server, with a small model of random weights
python -m surveys timeouts --client openai     # what a client of a model waits for by default
python -m surveys threads pydantic-ai          # what a cut leaves in a thread of another framework
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import pandas as pd
import typer
from rich.table import Table

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.progress import Progress, ProgressBar
from docmind_lab.core.whole_files import write_or_refuse
from docmind_lab.views.cli.console import console
from surveys.agent_table import AgentRow, read_rows, write_rows
from surveys.agents import probe_agents
from surveys.case_files import read_cases
from surveys.client_timeouts import CLIENTS, probe_clients
from surveys.client_timeouts import write_rows as write_client_rows
from surveys.gateways import GATEWAYS, probe_gateway
from surveys.matrix import cell_text, write_page
from surveys.model_servers import LLAMA_CPP, SERVERS, probe_model_server
from surveys.published import agent_thread_cells, client_cells, trial_cells
from surveys.threads import STORES, probe_threads

surveys = typer.Typer(no_args_is_help=True, help="Does it stop? What goes on after a timeout has fired, measured.")


@surveys.command()
def gateways(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Gateways; all of them when left out.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trials of each phase and way of leaving.")] = 3,
    out: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv; other rows stay.")] = "",
) -> None:
    """Leave calls that go through a gateway, and say whether and when the server behind it learns of that.

    Each is started here in front of the lab's own service. A program that is not on the PATH is named and left out.
    """
    _leave_calls("gateway", names, list(GATEWAYS), out, lambda name, show: probe_gateway(GATEWAYS[name], repeats, show))


@surveys.command("servers")
def model_servers(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Servers; all when left out.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trials of each phase and way of leaving.")] = 3,
    out: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv; other rows stay.")] = "",
) -> None:
    """Leave calls to model servers, and say whether and when their work on them ends.

    Each is started here with a small model of random weights. A program that is not on the PATH is named and left out.
    """
    known = [LLAMA_CPP, *SERVERS]
    _leave_calls("server", names, known, out, lambda name, show: probe_model_server(name, repeats, progress=show))


def _leave_calls(
    kind: Literal["server", "gateway"],
    names: list[str] | None,
    known: list[str],
    out: str,
    probe: Callable[[str, Progress], pd.DataFrame],
) -> None:
    """Probe each, print its cells, and put its rows in place of those that the file has of it."""
    if unknown := set(names or ()) - set(known):
        raise ConfigurationError(f"{kind}s are {', '.join(known)}, not {', '.join(sorted(unknown))}")
    if out and Path(out).suffix != ".csv":
        raise ConfigurationError(f"--out must end in .csv: got {out}")
    measured = 0
    for name in names or known:
        bar = ProgressBar("trials", name, is_shown=True)
        try:
            trials = probe(name, bar.show)
        except DocmindLabError as error:
            if names:
                raise
            typer.echo(f"Not measured: {error}.", err=True)
            continue
        finally:
            bar.close()
        measured += 1
        if out:
            _replace(Path(out), "name", name, trials)
        for cell in trial_cells(trials, kind):
            typer.echo(f"{cell.name} {cell.version}, {cell.falls_into}: {cell_text(cell)}")
    if not measured:
        raise ConfigurationError(f"no {kind} is on the PATH; install one of those named above")


def _replace(path: Path, column: str, name: str, rows: pd.DataFrame) -> None:
    """Put rows in place of those that a file has of the same name."""
    earlier = pd.read_csv(path) if path.exists() else rows.iloc[:0]
    whole = pd.concat([earlier[earlier[column] != name], rows])
    write_or_refuse(path, functools.partial(whole.to_csv, index=False))


@surveys.command()
def agents(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Cases; all when left out.")] = None,
    way: Annotated[list[str] | None, typer.Option(help="Way to set the timeout; may be repeated.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="What the timeout falls into; may be repeated.")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each.")] = 1,
    side_by_side: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
    missing: Annotated[bool, typer.Option(help="Only runs that --out has not of the same version.")] = False,
    cases: Annotated[str, typer.Option(help="Folder of the cases.")] = "surveys/cases",
    environments: Annotated[str, typer.Option(help="Folder of their packages.")] = ".cases",
    out: Annotated[
        str, typer.Option(help="File for a row of each run, ending in .csv, or folder with one for each case.")
    ] = "",
) -> None:
    """Run agents of many frameworks, each with its own timeout, and say whether their work stops when it fires.

    A case is run as a process, in an environment of its own, against simulated services on this machine.
    """
    chosen = read_cases(Path(cases), names or ())
    files = [path for case in chosen if (path := _table_of(out, case.name)).exists()] if out and missing else []
    bar = ProgressBar("runs", "probing", is_shown=True)
    rows: list[AgentRow] = []
    try:
        for row in probe_agents(
            chosen,
            cache=Path(environments),
            ways=way or (),
            faults=fault or (),
            repeats=repeats,
            side_by_side=side_by_side,
            known={row.run for path in files for row in read_rows(path)},
            progress=bar.show,
        ):
            rows.append(row)
            if out:
                # After each run, so that a probe that is ended keeps what it has.
                write_rows(_table_of(out, row.case), [row])
    finally:
        bar.close()
        _print_rows(rows)
    if out:
        typer.echo(f"In {out}")


def _table_of(out: str, case: str) -> Path:
    return Path(out) if out.endswith(".csv") else Path(out) / f"{case}.csv"


def _print_rows(rows: list[AgentRow]) -> None:
    if not rows:
        return
    table = Table(title="A timeout of 2 s fires", title_justify="left", box=None, pad_edge=False)
    columns = ("case", "way", "fault", "mark", "late s", "model s", "calls", "tool s", "tools", "exit s", "what came")
    for heading in columns:
        is_text = heading in ("case", "way", "fault", "mark", "what came")
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold")
    for row in rows:
        numbers = (row.late_s, row.model_s_after, row.model_calls_after, row.tool_s_after, row.tools_after)
        shown = [
            "" if number is None else f"{number:.2f}" if isinstance(number, float) else f"{number}"
            for number in numbers
        ]
        left = "" if row.exited is None else "no" if not row.exited else f"{row.exit_s:.2f}"
        what = row.error or row.outcome or ""
        table.add_row(row.case, row.way, row.fault, row.mark, *shown, left, what[:100])
    console().print(table)


@surveys.command()
def timeouts(
    client: Annotated[list[str] | None, typer.Option(help="Client; may be repeated; all when left out.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 1,
    connects: Annotated[bool, typer.Option(help="Also a host that does not answer: minutes of real time.")] = True,
    out: Annotated[str, typer.Option(help="File for a row of each client, ending in .csv; other rows stay.")] = "",
) -> None:
    """Measure how long clients wait by default for a server that hangs, trickles, or is not there."""
    if out and Path(out).suffix != ".csv":
        raise ConfigurationError(f"--out must end in .csv: got {out}")
    table = probe_clients(client or list(CLIENTS), repeats, connects=connects)
    if out:
        write_client_rows(Path(out), table)
    for cell in client_cells(table):
        typer.echo(f"{cell.name} {cell.version}, {cell.falls_into}: {cell_text(cell)}")


@surveys.command()
def threads(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Cases; all when left out.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each way and what it falls into.")] = 3,
    cases: Annotated[str, typer.Option(help="Folder of the cases.")] = "surveys/cases",
    environments: Annotated[str, typer.Option(help="Folder of their packages.")] = ".cases",
    out: Annotated[str, typer.Option(help="File for a row of each run, ending in .csv; other cases stay.")] = "",
) -> None:
    """Cut runs of agents that keep their threads, and send the user's next message to what is left."""
    if unknown := set(names or ()) - STORES.keys():
        raise ConfigurationError(f"cases with threads are {', '.join(STORES)}, not {', '.join(sorted(unknown))}")
    if out and Path(out).suffix != ".csv":
        raise ConfigurationError(f"--out must end in .csv: got {out}")
    for name in names or STORES:
        bar = ProgressBar("runs", name, is_shown=True)
        try:
            chosen = read_cases(Path(cases), [name])
            found = probe_threads(chosen, cache=Path(environments), repeats=repeats, progress=bar.show)
            table = pd.DataFrame([row.model_dump() for row in found])
        finally:
            bar.close()
        if out:
            _replace(Path(out), "case", name, table)
        for cell in agent_thread_cells(table):
            typer.echo(f"{cell.name} {cell.version}, {cell.way}: {cell.falls_into} {cell.mark}; {cell.note}")


@surveys.command()
def page() -> None:
    """Write the file of cells, its pages and its figure from the rows in data/."""
    write_page(Path.cwd())


def main(words: list[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        return int(surveys(words, standalone_mode=False) or 0)
    except DocmindLabError as error:
        typer.echo(f"surveys: {error}", err=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
