"""`docmind-lab probe`: whether a server or a tool stops when its client leaves."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_text, write_or_refuse
from docmind_lab.views.cli.console import INTERRUPTED, load_settings, print_finding, showing_progress

probe = typer.Typer(
    no_args_is_help=True, help="Does it stop? What servers and tools do when their client leaves, measured."
)


@probe.callback()
def _root() -> None:
    """Does it stop? What servers and tools do, measured."""


@probe.command()
def server(
    url: Annotated[str, typer.Argument(help="Address of an OpenAI-compatible server, as http://127.0.0.1:8080/v1.")],
    model: Annotated[str, typer.Option(help="Model that is asked; the server's first when left out.")] = "",
    repeats: Annotated[int, typer.Option(help="Trials of each phase and way of leaving.")] = 3,
    seconds: Annotated[float, typer.Option(help="How long an answer should take, about.")] = 3.0,
    max_tokens: Annotated[int, typer.Option(help="Limit of the tokens of each answer.")] = 2048,
    name: Annotated[str, typer.Option(help="Name of the profile; that of its file when left out.")] = "",
    out: Annotated[str, typer.Option(help="File for the profile, ending in .json.")] = "",
    trials: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before requests are sent.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON and nothing else.")] = False,
) -> None:
    """Leave calls to a server in each phase, and say whether and when its work on them ends.

    Nothing else should use the server meanwhile. Use the profile as compare --server FILE.json.
    """
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.experiments.probe import most_to_be_sent, probe_server  # noqa: PLC0415
    from docmind_lab.experiments.probe.truth import target_of  # noqa: PLC0415

    for option, path, suffix in (("--out", out, ".json"), ("--trials", trials, ".csv")):
        if path and Path(path).suffix != suffix:
            raise ConfigurationError(f"{option} must end in {suffix}: got {path}")
    target = target_of(url, model, load_settings(), name="URL")
    _announce(url, most_to_be_sent(target, repeats, max_tokens), yes=yes)
    with showing_progress("trials", "probing", as_json=as_json) as bar:
        probed = probe_server(target, repeats=repeats, seconds=seconds, most_tokens=max_tokens, progress=bar.show)
    options = {"model": model, "repeats": repeats, "seconds": seconds, "max-tokens": max_tokens}
    words = [f"--{option}={value}" for option, value in options.items() if value != ""]
    profile = probed.behaviour(
        name or Path(out).stem.lower() or "probed", shlex.join(["docmind-lab", "probe", "server", "URL", *words])
    )
    if out:
        write_or_refuse(Path(out), as_text(profile.to_json()))
    if trials:
        write_or_refuse(Path(trials), functools.partial(probed.trials.to_csv, index=False))
    if as_json:
        typer.echo(profile.to_json(), nl=False)
        return
    print_finding(probed.finding(), as_json=False)
    for path in filter(None, (out, trials)):
        typer.echo(f"In {path}")
    if out:
        typer.echo(f"Use it as docmind-lab compare --server {out}")


def _announce(url: str, what: str, *, yes: bool) -> None:
    """Say what will be sent, and ask whether to unless `yes`. Raises: typer.Exit where the answer is no."""
    typer.echo(f"To be sent to {url}: {what}.", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigurationError("nobody can be asked whether to send them; say so with --yes")
    if not typer.confirm("Send them?", err=True):
        raise typer.Exit(INTERRUPTED)


@probe.command("mcp")
def mcp_tool(
    mcp_server: Annotated[
        str, typer.Argument(metavar="COMMAND|URL", help="Command that starts an MCP server on stdio, or its address.")
    ],
    tool: Annotated[str, typer.Option(help="A tool that asks an address that it is given.")],
    arguments: Annotated[
        str, typer.Option(help="Its arguments as JSON; {work} stands for the address of the work.")
    ] = '{"url": "{work}"}',
    repeats: Annotated[int, typer.Option(min=1, help="Trials of each way to give up.")] = 3,
    out: Annotated[str, typer.Option(help="File for a row of each trial, ending in .csv.")] = "",
) -> None:
    """Give up calls of an MCP tool, and say whether and when its work stops.

    The caller gives up by a timeout, a cancelled task, and a closed session.

    The tool's work is a request to the lab, which takes six seconds to answer.
    """
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.experiments.probe.mcp_tools import as_markdown, probe_mcp  # noqa: PLC0415

    if out and Path(out).suffix != ".csv":
        raise ConfigurationError(f"--out must end in .csv: got {out}")
    if mcp_server.startswith(("http://", "https://")):
        load_settings().admit(mcp_server, name="URL")
    try:
        values = json.loads(arguments)
    except ValueError as error:
        raise ConfigurationError(f"--arguments is not JSON: {error}") from error
    with showing_progress("trials", "probing", as_json=False) as bar:
        trials = probe_mcp(mcp_server, tool=tool, arguments=values, repeats=repeats, progress=bar.show)
    if out:
        write_or_refuse(Path(out), functools.partial(trials.to_csv, index=False))
    typer.echo(as_markdown(trials), nl=False)
