"""`docmind-lab probe`: whether a model server stops when its client leaves, and an agent when its timeout fires."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.interfaces.cli.console import INTERRUPTED, ProgressBar, console, load_settings

if TYPE_CHECKING:
    from docmind_lab.experiments.probe import ServerProbe
    from docmind_lab.experiments.probe.agent_table import AgentRow
    from docmind_lab.services.behaviour import PhaseBehaviour

probe = typer.Typer(
    no_args_is_help=True, help="Does it stop? What goes on after a client has left or a timeout has fired, measured."
)

_IN_WORDS = {
    "at_once": "stops",
    "at_next_write": "stops when it next writes",
    "at_its_end": "goes on to its end",
    "unknown": "cannot be told",
}


@probe.callback()
def _root() -> None:
    """Does it stop? What goes on after a client has left or a timeout has fired, measured."""


@probe.command()
def server(
    url: Annotated[str, typer.Argument(help="Address of an OpenAI-compatible server, as http://127.0.0.1:8080/v1.")],
    model: Annotated[str, typer.Option(help="Model that is asked; the server's first when left out.")] = "",
    repeats: Annotated[int, typer.Option(help="Trials of each phase and way of leaving.")] = 3,
    seconds: Annotated[float, typer.Option(help="How long an answer should take, about.")] = 3.0,
    max_tokens: Annotated[int, typer.Option(help="Limit of the tokens of each answer.")] = 2048,
    by_waiting: Annotated[
        bool, typer.Option("--by-waiting", help="Judge by the wait of other requests, whatever the server counts.")
    ] = False,
    name: Annotated[str, typer.Option(help="Name of the profile; that of its file when left out.")] = "",
    out: Annotated[str, typer.Option(help="File for the profile, ending in .json.")] = "",
    trials: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before requests are sent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON and nothing else.")] = False,
) -> None:
    """Leave calls to a server in each phase, and say whether and when its work on them ends.

    Nothing else should use the server meanwhile. Use the profile as compare --server-behaviour FILE.json.
    """
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.experiments.probe import Target, first_model, most_to_be_sent, probe_server  # noqa: PLC0415

    for option, path, suffix in (("--out", out, ".json"), ("--trials", trials, ".csv")):
        if path and Path(path).suffix != suffix:
            raise ConfigurationError(f"{option} must end in {suffix}: got {path}")
    settings = load_settings()
    settings.admit(url, name="URL")
    api_key = settings.llm.api_key.get_secret_value()
    target = Target(url, model or first_model(Target(url, "", api_key)), api_key)
    typer.echo(f"To be sent to {url}: {most_to_be_sent(repeats, max_tokens)}.", err=True)
    if not yes:
        if not sys.stdin.isatty():
            raise ConfigurationError("nobody can be asked whether to send them; say so with --yes")
        if not typer.confirm("Send them?", err=True):
            raise typer.Exit(INTERRUPTED)
    bar = ProgressBar("trials", "probing", shown=not as_json)
    try:
        found = probe_server(
            target,
            repeats=repeats,
            seconds=seconds,
            most_tokens=max_tokens,
            by_waiting=by_waiting,
            progress=bar.show,
        )
    finally:
        bar.close()
    words = [f"--repeats={repeats}", f"--seconds={seconds:g}", *(["--by-waiting"] if by_waiting else []), "--yes"]
    profile = found.behaviour(
        name or Path(out).stem.lower() or "probed", shlex.join(["docmind-lab", "probe", "server", "URL", *words])
    )
    if out:
        Path(out).write_text(profile.to_json(), encoding="utf-8")
    if trials:
        found.trials.to_csv(trials, index=False)
    if as_json:
        typer.echo(profile.to_json(), nl=False)
        return
    _print(found)
    for path in filter(None, (out, trials)):
        typer.echo(f"In {path}")
    if out:
        typer.echo(f"Use it as docmind-lab compare --server-behaviour {out}")


def _print(found: ServerProbe) -> None:
    from rich.table import Table  # noqa: PLC0415 - slow, and --help does not need it

    from docmind_lab.services.behaviour import PHASES  # noqa: PLC0415 - pydantic is slow to import

    table = Table(title=f"{found.server}: a client leaves", title_justify="left", box=None, pad_edge=False)
    for heading in ("where its call is", "the work", "after", "late tokens", "trials"):
        table.add_column(heading, justify="right" if heading in ("after", "late tokens", "trials") else "left")
    behaviours = {phase: found.phase(phase) for phase in PHASES}
    for phase, behaviour in behaviours.items():
        tokens = "" if behaviour.late_tokens is None else f"{behaviour.late_tokens:,.0f}"
        table.add_row(
            phase.replace("_", " "), _IN_WORDS[behaviour.work_ends], _after(behaviour), tokens, f"{behaviour.trials}"
        )
    console().print(table)
    for phase, behaviour in behaviours.items():
        if behaviour.note:
            typer.echo(f"{phase.replace('_', ' ')}: {behaviour.note}.")
    limits = ", ".join(f"{name} {verdict}" for name, verdict in found.limits.items())
    typer.echo(f"Limits that a request asks for: {limits}.")
    evidence = sorted({trial.evidence for trial in found.results if trial.evidence != "none"})
    typer.echo(f"Told by: {', '.join(evidence) or 'nothing'}.")


def _after(behaviour: PhaseBehaviour) -> str:
    if behaviour.delay_s is None:
        return ""
    if behaviour.checks_every_s is not None:
        return f"its next look, every {behaviour.checks_every_s:g} s"
    if behaviour.low_s is not None and behaviour.high_s is not None and behaviour.high_s - behaviour.low_s > 0.1:
        return f"{behaviour.low_s:.2f} to {behaviour.high_s:.2f} s"
    return f"{behaviour.delay_s:.2f} s"


@probe.command()
def agents(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Cases; all when left out.")] = None,
    way: Annotated[list[str] | None, typer.Option(help="Way to set the timeout; may be repeated.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="What the timeout falls into; may be repeated.")] = None,
    repeats: Annotated[int, typer.Option(help="Runs of each.")] = 1,
    side_by_side: Annotated[int, typer.Option(help="Runs at a time.")] = 2,
    cases: Annotated[str, typer.Option(help="Folder of the cases.")] = "cases",
    environments: Annotated[str, typer.Option(help="Folder of their packages.")] = ".cases",
    out: Annotated[
        str, typer.Option(help="File for a row of each run, ending in .csv, or folder with one for each case.")
    ] = "",
) -> None:
    """Run agents of many frameworks, each with its own timeout, and say whether their work stops when it fires.

    A case is run as a process, in an environment of its own, against simulated services on this machine.
    """
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.experiments.probe.agent_table import write_rows  # noqa: PLC0415
    from docmind_lab.experiments.probe.agents import probe_agents  # noqa: PLC0415
    from docmind_lab.experiments.probe.cases import read_cases  # noqa: PLC0415

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
    from rich.table import Table  # noqa: PLC0415 - slow, and --help does not need it

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
