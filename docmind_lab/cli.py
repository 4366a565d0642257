"""`docmind-lab`: the command line. Exit code 0: done, 1: the study or a service failed, 2: bad usage."""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docmind_lab.errors import ConfigurationError, DocmindLabError

if TYPE_CHECKING:
    from docmind_lab.study import Study

INTERRUPTED = 130
TIMEOUT_VARIABLE = "DOCMIND_AGENTS__DECISION_TIMEOUT"

app = typer.Typer(
    name="docmind-lab",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_FAULT_HELP = "Fault as kind:role:probability, such as hang or trickle:synthesis:0.5; may be repeated."
_PROFILE_HELP = "Latency profile: fast, typical, heavy_tail, local_gpu; NAME/N divides every latency by N."


@app.callback()
def _root() -> None:
    """Measure how a multi-agent system should enforce its deadline, and how long the deadline should be.

    Settings come from DOCMIND_ environment variables.

    Exit code 0: done, 1: the study or a service failed, 2: bad usage.
    """


@app.command()
def compare(
    decision_timeout: Annotated[
        float | None,
        typer.Option(help=f"Budget of one question, in seconds; {TIMEOUT_VARIABLE} or 2.0 when left out."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Questions asked of each alternative.")] = 8,
    seed: Annotated[int, typer.Option(help="Keys the questions, latencies and faults.")] = 7,
    alternatives: Annotated[
        str, typer.Option(help="Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out.")
    ] = "",
    profile: Annotated[str, typer.Option(help=_PROFILE_HELP)] = "typical/6",
    fault: Annotated[list[str] | None, typer.Option(help=_FAULT_HELP)] = None,
    stops_on_disconnect: Annotated[
        bool, typer.Option(help="Whether the model server stops generating when its client leaves.")
    ] = True,
    retries: Annotated[
        int | None, typer.Option(help="Tries after the first; the clients' own defaults when left out.")
    ] = None,
    side_by_side: Annotated[
        int, typer.Option(help="Runs under way at once; 1 also measures coordination overhead.")
    ] = 4,
    clock: Annotated[str, typer.Option(help="The clock: wall.")] = "wall",
    out: Annotated[
        str, typer.Option(help="Folder for tables, plots and report; results/<UTC time>-compare when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Ask the same questions under every alternative; show what each did to the caller, and what went on afterwards."""
    if clock != "wall":
        raise ConfigurationError(f"unknown clock {clock!r}; the clocks are wall")
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.comparison import compare as run_compare  # noqa: PLC0415
    from docmind_lab.settings import Settings  # noqa: PLC0415

    settings = Settings()
    logging.basicConfig(level=settings.log_level, stream=sys.stderr)
    if decision_timeout is None:
        decision_timeout = settings.agents.decision_timeout if TIMEOUT_VARIABLE in os.environ else 2.0
    folder = Path(out or f"results/{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-compare")
    bar = _ProgressBar(shown=not as_json)
    try:
        study = run_compare(
            decision_timeout,
            runs,
            seed,
            alternatives=alternatives or None,
            profile=profile,
            faults=fault or (),
            stops_on_disconnect=stops_on_disconnect,
            retries=retries,
            side_by_side=side_by_side,
            settings=settings,
            out=folder,
            progress=bar.show,
        )
    except KeyboardInterrupt:
        kept = f"; the finished runs are in {folder}" if (folder / "runs.parquet").exists() else ""
        typer.echo(f"docmind-lab: interrupted{kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.close()
    if as_json:
        typer.echo(json.dumps(_as_json(study, folder), indent=2))
    else:
        _print_study(study, folder)


class _ProgressBar:
    """A progress bar on standard error, made when the first run is done."""

    def __init__(self, *, shown: bool) -> None:
        from tqdm.std import tqdm  # noqa: PLC0415 - only for this command

        tqdm.monitor_interval = 0  # no thread of its own

        class Bar(tqdm):  # type: ignore[misc]
            """Has a lock of its own: a Ctrl-C while it draws may keep the lock, and searches use tqdm's common one."""

        Bar.set_lock(threading.RLock())
        # In a log every refresh is a line: seldom there, and smooth on a terminal.
        refresh_s = 0.1 if sys.stderr.isatty() else 5.0
        style = {"dynamic_ncols": True, "mininterval": refresh_s, "desc": "starting"}
        self._bar = Bar(total=0, unit=" runs", disable=not shown, leave=False, **style)

    def show(self, done: int, total: int) -> None:
        self._bar.total = total
        self._bar.set_description("measuring", refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _as_json(study: Study, folder: Path) -> dict[str, object]:
    table = study.summary()
    rows = json.loads(table.reset_index().to_json(orient="records"))
    return {"study_id": study.manifest["study_id"], "folder": str(folder), "alternatives": rows}


def _print_study(study: Study, folder: Path) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for this command
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from docmind_lab.summary import summarise  # noqa: PLC0415

    summary = summarise(study.runs, study.manifest)
    # Not a terminal (a file, a pipe, CI): wide enough that no column is cut.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
    frame = summary.display_table()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    for column in frame.columns:
        longest_word = max(len(word) for word in column.split())
        table.add_column(column, justify="right", min_width=longest_word, max_width=15)
    for label, row in zip(frame.index, frame.to_numpy(), strict=True):
        table.add_row(str(label), *(str(value) for value in row))
    console.print()
    console.print(summary.title, style="bold")
    console.print(table)
    console.print()
    for line in summary.sentences:
        console.print(Padding(f"• {line}", (0, 0, 0, 0)))
    console.print()
    for line in summary.advice:
        console.print(line)
    console.print()
    files = "summary.md, timeline.png, overrun.png, runs.parquet, calls.parquet, events.parquet, manifest.json"
    console.print(f"In {folder}: {files}")


@app.command()
def serve(
    port: Annotated[int, typer.Option(help="Port on loopback; 0 for a free one.")] = 0,
    profile: Annotated[str, typer.Option(help=_PROFILE_HELP)] = "typical",
    fault: Annotated[list[str] | None, typer.Option(help=_FAULT_HELP)] = None,
    seed: Annotated[int, typer.Option(help="Seed for clients that do not say which run they belong to.")] = 0,
    stops_on_disconnect: Annotated[bool, typer.Option(help="Stop generating when the client leaves.")] = True,
    until_stdin_closes: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Serve the simulated model and vector store on loopback; print their addresses as one JSON line when ready."""
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
