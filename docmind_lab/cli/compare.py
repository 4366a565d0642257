"""`docmind-lab compare`: the main job."""

from __future__ import annotations

import datetime
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from docmind_lab.cli import sending
from docmind_lab.cli.console import INTERRUPTED, ProgressBar, console, load_settings
from docmind_lab.cli.printing import print_study, study_as_json, table_of

if TYPE_CHECKING:
    import pandas as pd

    from docmind_lab.budgets import Budget
    from docmind_lab.clocks import ClockName
    from docmind_lab.workloads.own import Services

TIMEOUT_VARIABLE = "DOCMIND_AGENTS__DECISION_TIMEOUT"
FAULT_HELP = (
    "Fault as kind=seconds@attempts:role:probability, all but the kind optional, such as hang, stall=5, http_500@1 or "
    "trickle:synthesis:0.5; may be repeated."
)
WORKLOAD_HELP = "System under the deadline: supervisor, research, staged or peers; module:ATTRIBUTE for another's."
PROFILE_HELP = "Latency profile: fast, typical, heavy_tail, local_gpu or a file of docmind-lab profile; /N divides it."


def compare(
    decision_timeout: Annotated[
        float | None,
        typer.Option(
            help=f"Budget of one question, in seconds; {TIMEOUT_VARIABLE} or 20 when left out, 2 on the wall clock."
        ),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(help="Questions asked of each alternative; 40 when left out, 8 on the wall clock.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Keys the questions, latencies and faults.")] = 7,
    alternatives: Annotated[
        str, typer.Option(help="Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out.")
    ] = "",
    profile: Annotated[
        str, typer.Option(help=f"{PROFILE_HELP} heavy_tail/3 when left out, typical/6 on the wall clock.")
    ] = "",
    fault: Annotated[list[str] | None, typer.Option(help=FAULT_HELP)] = None,
    stops_on_disconnect: Annotated[
        bool, typer.Option(help="Whether the model server stops generating when its client leaves.")
    ] = True,
    retries: Annotated[
        int | None, typer.Option(help="Tries after the first; the clients' own defaults when left out.")
    ] = None,
    router_injection: Annotated[
        bool | None,
        typer.Option(
            "--router-injection/--no-router-injection",
            help="Retrieval asks a router engine first; DOCMIND_AGENTS__ENABLE_ROUTER_INJECTION or no when left out.",
        ),
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(help="Tokens that a run may use, read and written; no limit when left out.")
    ] = None,
    budget_calls: Annotated[
        int | None, typer.Option(help="Requests to the model that a run may make; no limit when left out.")
    ] = None,
    budget_cost: Annotated[
        float | None, typer.Option(help="What a run may cost, in the currency of --price; no limit when left out.")
    ] = None,
    price: Annotated[
        str, typer.Option(help="INPUT/OUTPUT, the price of a million tokens of each, such as 0.15/0.60.")
    ] = "",
    workload: Annotated[str, typer.Option(help=WORKLOAD_HELP)] = "supervisor",
    graph: Annotated[
        str, typer.Option(help="Your own LangGraph graph, or a function that makes one, as module:attribute.")
    ] = "",
    inputs: Annotated[
        str, typer.Option(help="File of the graph's inputs: one JSON object, or text, in each line.")
    ] = "",
    deadline_key: Annotated[
        str, typer.Option(help="Key of the graph's input that takes the deadline, if it has one.")
    ] = "deadline_ts",
    services: Annotated[
        str,
        typer.Option(
            help="What answers your graph: simulated, or own (wall clock): its endpoints, which cost what they cost."
        ),
    ] = "simulated",
    clock: Annotated[
        str, typer.Option(help="virtual (simulated time) or wall (sockets, real time); wall for live endpoints.")
    ] = "",
    workers: Annotated[
        int | None, typer.Option(help="Processes in virtual time; one on each core when left out.")
    ] = None,
    side_by_side: Annotated[
        int | None,
        typer.Option(
            help="Runs under way at once on the wall clock; 4 when left out, 1 for your own graph. 1 also measures "
            "coordination overhead."
        ),
    ] = None,
    out: Annotated[
        str, typer.Option(help="Folder for tables, plots and report; results/<UTC time>-compare when left out.")
    ] = "",
    record: Annotated[str, typer.Option(help=sending.RECORD_HELP)] = "",
    record_text: Annotated[bool, typer.Option("--record-text", help=sending.RECORD_TEXT_HELP)] = False,
    replay: Annotated[str, typer.Option(help=sending.REPLAY_HELP)] = "",
    max_requests: Annotated[int | None, typer.Option(help=sending.MAX_REQUESTS_HELP)] = None,
    max_tokens: Annotated[int | None, typer.Option(help=sending.MAX_TOKENS_HELP)] = None,
    yes: Annotated[bool, typer.Option("--yes", help=sending.YES_HELP)] = False,
    otlp: Annotated[
        bool, typer.Option("--otlp", help="Send spans of runs and calls to where OTEL_EXPORTER_OTLP_ENDPOINT says.")
    ] = False,
    metrics_file: Annotated[
        str, typer.Option(help="Write Prometheus metrics of the runs to this file; none when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Ask the same questions under every alternative; show what each did to the caller, and what went on afterwards."""
    # Function-level: the stack takes seconds to import, and --help must not.
    from docmind_lab.comparison import compare as run_compare  # noqa: PLC0415
    from docmind_lab.telemetry import Telemetry  # noqa: PLC0415

    settings = load_settings()
    if decision_timeout is None and TIMEOUT_VARIABLE in os.environ:
        decision_timeout = settings.agents.decision_timeout
    folder = Path(out or f"results/{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-compare")
    shown = (
        _GrowingTable() if sys.stdout.isatty() and not as_json else ProgressBar("runs", "measuring", shown=not as_json)
    )
    try:
        study = run_compare(
            decision_timeout,
            runs,
            seed,
            alternatives=alternatives or None,
            profile=profile or None,
            faults=fault or (),
            stops_on_disconnect=stops_on_disconnect,
            retries=retries,
            router_injection=router_injection,
            budget=_budget(budget_tokens, budget_calls, budget_cost, price),
            workload=workload,
            graph=graph or None,
            inputs=inputs or None,
            deadline_key=deadline_key,
            services=cast("Services", services),
            clock=cast("ClockName | None", clock or None),
            workers=workers,
            side_by_side=side_by_side,
            settings=settings,
            out=folder,
            telemetry=Telemetry(spans="otlp" if otlp else None, metrics_file=metrics_file or None),
            progress=shown.show,
            watch=shown.watch if isinstance(shown, _GrowingTable) else None,
            record=record or None,
            record_text=record_text,
            replay=replay or None,
            max_requests=max_requests,
            max_tokens=max_tokens,
            before_sending=sending.asking(yes=yes, drawn=shown if isinstance(shown, _GrowingTable) else None),
        )
    except KeyboardInterrupt:
        kept = f"; the finished runs are in {folder}" if (folder / "runs.parquet").exists() else ""
        typer.echo(f"docmind-lab: interrupted{kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        shown.close()
    for note in sending.notes(study.manifest, len(study.runs)):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(study_as_json(study, folder), indent=2))
    else:
        files = "summary.md, timeline.png, overrun.png, runs.parquet, calls.parquet, events.parquet, manifest.json"
        print_study(study, f"In {folder}: {files}")


def _budget(tokens: int | None, calls: int | None, cost: float | None, price: str) -> Budget | None:
    """What a run may use besides time; None where nothing is said."""
    from docmind_lab.budgets import Budget, Price  # noqa: PLC0415 - the stack takes seconds to import

    if tokens is None and calls is None and cost is None and not price:
        return None
    return Budget(tokens=tokens, calls=calls, cost=cost, price=Price.parse(price) if price else None)


class _GrowingTable:
    """The summary's table on a terminal, with the rows that are there so far; gone when it is closed."""

    def __init__(self) -> None:
        from rich.live import Live  # noqa: PLC0415 - only for this command, on a terminal

        self._done = "starting"
        self._table: Any = ""
        self._live = Live(console=console(), transient=True, auto_refresh=False)
        self._live.start()
        self._draw()

    def show(self, done: int, total: int) -> None:
        """`done` of `total` runs are over."""
        self._done = f"{done} of {total} runs"
        self._draw()

    def watch(self, runs: pd.DataFrame) -> None:
        """The runs so far."""
        from docmind_lab.summary import summarise  # noqa: PLC0415

        self._table, _ = table_of(summarise(runs, {}).display_table(), self._live.console.width)
        self._draw()

    def pause(self) -> None:
        """Take it off the screen for a while."""
        self._live.stop()

    def go_on(self) -> None:
        """Put it back."""
        self._live.start()

    def close(self) -> None:
        """Take it off the screen."""
        self._live.stop()

    def _draw(self) -> None:
        from rich.console import Group  # noqa: PLC0415

        self._live.update(Group(f"measuring: {self._done}", self._table), refresh=True)
