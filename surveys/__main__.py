"""The surveys behind docs/does-it-stop.md: agents of many frameworks, and gateways.

python -m surveys agents --repeats 2 --out data/agent_probes
python -m surveys page                         # the rows of data/agent_probes → page and figure
python -m surveys gateways --out mine.csv
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.table import Table

from docmind_lab.core.errors import ConfigurationError, DocmindLabError
from docmind_lab.core.whole_files import write_or_refuse
from docmind_lab.views.cli.console import ProgressBar, console
from surveys.agent_table import AgentRow, write_rows
from surveys.agents import probe_agents
from surveys.case_files import read_cases
from surveys.gateways import GATEWAYS, as_markdown, probe_gateway
from surveys.matrix import write_page

surveys = typer.Typer(no_args_is_help=True, help="Does it stop? What goes on after a timeout has fired, measured.")


@surveys.command()
def gateways(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Gateways; all of them when left out.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trials of each phase and way of leaving.")] = 2,
    out: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv.")] = "",
) -> None:
    """Leave calls that go through a gateway, and say whether and when the server behind it learns of that.

    Each is started here in front of the lab's own service. A program that is not on the PATH is named and left out.
    """
    if unknown := set(names or ()) - GATEWAYS.keys():
        raise ConfigurationError(f"gateways are {', '.join(GATEWAYS)}, not {', '.join(sorted(unknown))}")
    if out and Path(out).suffix != ".csv":
        raise ConfigurationError(f"--out must end in .csv: got {out}")
    tables = []
    for name in names or GATEWAYS:
        bar = ProgressBar("trials", name, shown=True)
        try:
            tables.append(probe_gateway(GATEWAYS[name], repeats=repeats, progress=bar.show))
        except ConfigurationError as error:
            if names:
                raise
            typer.echo(f"Not measured: {error}.", err=True)
        finally:
            bar.close()
        if out and tables:
            write_or_refuse(Path(out), functools.partial(pd.concat(tables).to_csv, index=False))
    if not tables:
        raise ConfigurationError("no gateway is on the PATH; install one of those named above")
    typer.echo(as_markdown(pd.concat(tables)), nl=False)


@surveys.command()
def agents(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Cases; all when left out.")] = None,
    way: Annotated[list[str] | None, typer.Option(help="Way to set the timeout; may be repeated.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="What the timeout falls into; may be repeated.")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each.")] = 1,
    side_by_side: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
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
    bar = ProgressBar("runs", "probing", shown=True)
    rows: list[AgentRow] = []
    try:
        for row in probe_agents(
            chosen,
            cache=Path(environments),
            ways=way or (),
            faults=fault or (),
            repeats=repeats,
            side_by_side=side_by_side,
            progress=bar.show,
        ):
            rows.append(row)
            if out:
                # After each run, so that a probe that is ended keeps what it has.
                path = Path(out) if out.endswith(".csv") else Path(out) / f"{row.case}.csv"
                write_rows(path, [row])
    finally:
        bar.close()
        _print_rows(rows)
    if out:
        typer.echo(f"In {out}")


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
def page() -> None:
    """Write docs/does-it-stop.md and its figure from the rows in data/agent_probes."""
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
