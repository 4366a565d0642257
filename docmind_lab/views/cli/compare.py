"""`docmind-lab compare`: the same questions under every alternative."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import ENDED_UNANSWERED
from docmind_lab.experiments.world_options import Live, Replay, as_live, nouns_of
from docmind_lab.findings.endings import control_failed
from docmind_lab.views.cli.console import INTERRUPTED, load_settings, showing_progress, whole
from docmind_lab.views.cli.fields_as_options import TIMEOUT_VARIABLE, Given, takes
from docmind_lab.views.cli.printing import print_study, study_as_json

if TYPE_CHECKING:
    from docmind_lab.core.settings import Settings
    from docmind_lab.findings.study import Study


_of_runs = functools.partial(typer.Option, rich_help_panel="How it is measured")
_shown = functools.partial(typer.Option, rich_help_panel="What is kept and shown")
_WORKERS = (
    "Processes in virtual time; one on each core when left out. On the wall clock, runs under way at once; 4 when left "
    "out, 1 for your own graph or a live endpoint. 1 also measures coordination overhead."
)


@takes()
def compare(
    options: Given,
    decision_timeout: Annotated[
        float | None,
        _of_runs(help=f"Budget of one run, in seconds; {TIMEOUT_VARIABLE} or 20 when left out, 2 on the wall clock."),
    ] = None,
    budget_tokens: Annotated[int | None, _of_runs(help="Tokens that a run may use, read and written.")] = None,
    budget_calls: Annotated[int | None, _of_runs(help="Requests to the model that a run may make.")] = None,
    budget_cost: Annotated[float | None, _of_runs(help="What a run may cost, in the currency of --price.")] = None,
    price: Annotated[str, _of_runs(help="INPUT/OUTPUT, of a million tokens of each, such as 0.15/0.60.")] = "",
    runs: Annotated[
        int | None, _of_runs(help="Questions asked of each alternative; 40 when left out, 8 on the wall clock.")
    ] = None,
    seed: Annotated[int, _of_runs(help="Keys the questions, latencies and faults.")] = 7,
    alternatives: Annotated[
        str | None, _of_runs(help="Levels, letters or variants, such as A,B,B:naive,unguarded; all when left out.")
    ] = None,
    workers: Annotated[int | None, _of_runs(help=_WORKERS)] = None,
    out: Annotated[str, _shown(help="Folder for everything; results/<UTC time>-compare when left out.")] = "",
    yes: Annotated[bool, _shown("--yes", help="Do not ask before requests are sent to a live endpoint.")] = False,
    otlp: Annotated[bool, _shown("--otlp", help="Send spans to where OTEL_EXPORTER_OTLP_ENDPOINT says.")] = False,
    verbose: Annotated[bool, _shown("--verbose", help="Print the full table and each alternative too.")] = False,
    as_json: Annotated[bool, _shown("--json", help="Print the summary as JSON and nothing else.")] = False,
) -> None:
    """Ask the same questions under every alternative; show what each did to the caller, and what went on afterwards."""
    if "record_text" in options and "record" not in options:
        raise ConfigurationError("--record-text keeps the text of a recording: give --record FOLDER too")
    if verbose and as_json:
        raise ConfigurationError("--verbose is for people, and --json has everything already; leave one out")
    from docmind_lab.core.budgets import Budget, Price
    from docmind_lab.views.telemetry import Telemetry

    settings = load_settings()
    if decision_timeout is None and TIMEOUT_VARIABLE in os.environ:
        decision_timeout = settings.agents.decision_timeout
    limits: dict[str, Any] = {"tokens": budget_tokens, "calls": budget_calls, "cost": budget_cost}
    limits["price"] = Price.parse(price) if price else None
    if any(limit is not None for limit in limits.values()):
        options["budget"] = Budget(**limits)
    values = nouns_of(options) | {
        "decision_timeout_s": decision_timeout,
        "alternatives": alternatives,
        "runs": runs,
        "seed": seed,
        "workers": workers,
        "telemetry": Telemetry(spans="otlp" if otlp else None),
    }
    folder = Path(out or f"results/{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-compare")
    study = _measured(values, settings, folder, yes=yes, as_json=as_json)
    for note in notes_on_sending(study.manifest, len(study.runs)):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(study_as_json(study, folder), indent=2))
    else:
        files = "summary.md, timeline.png, overrun.png, runs.parquet, calls.parquet, events.parquet, manifest.json"
        print_study(study, f"In {folder}: {files}", verbose=verbose)
    if study.runs["outcome"].astype("str").isin(ENDED_UNANSWERED).all() or control_failed(study.runs):
        raise typer.Exit(1)  # nothing was measured that a choice could rest on


def _measured(values: Mapping[str, Any], settings: Settings, folder: Path, *, yes: bool, as_json: bool) -> Study:
    """The study, its progress shown. values: keywords of `compare`. Raises: typer.Exit when it is interrupted."""

    def finished(runs: int) -> str:
        saved = (folder / "runs.parquet").exists()
        return f"; the {runs} finished runs are in {folder}" if saved else "; no run was finished, nothing is saved"

    with showing_progress("runs", "measuring", as_json=as_json, when_interrupted=finished) as bar:
        from docmind_lab.experiments.comparison import comparison_run as run
        from docmind_lab.experiments.measurement.simulation import live_endpoint_of

        world = values["world"]
        may_send = isinstance(world, Live) or (live_endpoint_of(settings) and getattr(world, "clock", "") != "virtual")
        if may_send and not isinstance(world, Replay):
            world = as_live(world, before_sending=confirm_sending(yes=yes, hide_bar=bar.hide))
        return whole(run.compare(**{**values, "world": world}, out=folder, progress=bar.show))


def confirm_sending(
    *, yes: bool, hide_bar: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
) -> Callable[[str], None]:
    """Returns what shows the estimate of a live study and, on a terminal, asks whether to send its requests.

    hide_bar: hides the progress bar during a block, in which the question is asked.
    """

    def ask(estimate: str) -> None:
        with hide_bar():
            typer.echo(f"To be sent to the live endpoint: {estimate}.", err=True)
            if not yes and sys.stdin.isatty() and not typer.confirm("Send them?", err=True):
                typer.echo("docmind-lab: nothing was sent", err=True)
                raise typer.Exit(INTERRUPTED)

    return ask


def notes_on_sending(manifest: Mapping[str, Any], runs: int) -> Iterator[str]:
    """What the manifest of a study says of caps, a sentence each. runs: that are in its tables."""
    sent = manifest.get("sent")
    if sent is not None:
        estimated = sent["requests_with_estimated_tokens"]
        unsaid = f", of {estimated:,} requests estimated" if estimated else ""
        yield f"Sent: {sent['requests']:,} model requests, {sent['tokens']:,} tokens{unsaid}."
    if "ended_by" in manifest:
        yield (
            f"Ended by {manifest['ended_by']}. Its {runs} finished runs are kept; {sent['runs_cut'] if sent else 0} "
            "that needed another request are left out."
        )
