"""`docmind-lab`: the command line."""

from __future__ import annotations

import os
import sys
import threading
from typing import Annotated

import typer

from docmind_lab.errors import ConfigurationError, DocmindLabError

app = typer.Typer(
    name="docmind-lab",
    help="Measure how a multi-agent system should enforce its deadline, and how long the deadline should be.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Commands exit with 0 when done, 1 when the study or service failed, 2 for bad usage."""


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on loopback; 0 for a free one.")] = 0,
    profile: Annotated[str, typer.Option(help="Latency profile.")] = "typical",
    fault: Annotated[list[str] | None, typer.Option(help="Fault as kind:role:probability; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Seed for clients that do not say which run they belong to.")] = 0,
    stops_on_disconnect: Annotated[bool, typer.Option(help="Stop generating when the client goes away.")] = True,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Serve the simulated model and vector store on loopback; prints their addresses as one JSON line when ready."""
    # Function-level: importing the services takes seconds, and --help must not.
    from docmind_lab.services.faults import Fault  # noqa: PLC0415
    from docmind_lab.services.latency import LatencyProfile  # noqa: PLC0415
    from docmind_lab.services.server import ServiceOptions  # noqa: PLC0415
    from docmind_lab.services.server import serve as serve_forever  # noqa: PLC0415

    options = ServiceOptions(
        profile=LatencyProfile.named(profile),
        faults=tuple(Fault.parse(text) for text in fault or ()),
        stops_on_disconnect=stops_on_disconnect,
        seed=seed,
    )
    if until_stdin_closes:
        threading.Thread(target=_exit_when_stdin_closes, daemon=True).start()
    serve_forever(options, port)


def _exit_when_stdin_closes() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    """Run the command line; a known error is one line on standard error and an exit code."""
    try:
        app()
    except ConfigurationError as error:
        typer.echo(f"docmind-lab: {error}", err=True)
        sys.exit(2)
    except DocmindLabError as error:
        typer.echo(f"docmind-lab: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
