"""`docmind-lab compare`: the same questions under every alternative."""

from __future__ import annotations

import contextlib
import datetime
import inspect
import json
import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from docmind_lab.core.clock import parse_charge
from docmind_lab.core.deadlines import DEADLINE_KEY
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.levels import ENDED_UNANSWERED
from docmind_lab.findings.controls import control_failed
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE
from docmind_lab.views.cli import options
from docmind_lab.views.cli.console import INTERRUPTED, ProgressBar, load_settings, prints_on_stderr
from docmind_lab.views.cli.printing import print_study, study_as_json

if TYPE_CHECKING:
    from docmind_lab.findings.study import Study


def compare(
    decision_timeout: float | None = None,
    runs: int | None = None,
    seed: int = 7,
    alternatives: str | None = None,
    profile: list[str] | None = None,
    fault: list[str] | None = None,
    stops_on_disconnect: bool = True,
    server_behaviour: str = "",
    retries: int | None = None,
    router_injection: bool | None = None,
    budget_tokens: int | None = None,
    budget_calls: int | None = None,
    budget_cost: float | None = None,
    price: str = "",
    workload: str = "supervisor",
    documents: str = "",
    questions: str = "",
    graph: str = "",
    agent: str = "",
    command: str = "",
    inputs: str = "",
    deadline_key: str = "deadline_ts",
    context: str = "",
    config: str = "",
    store: str = "",
    resume: list[str] | None = None,
    endpoints: str = "",
    services: str = "simulated",
    enforced: bool = False,
    clock: str = "",
    workers: int | None = None,
    side_by_side: int | None = None,
    cpu_charge: str = "0",
    model_variation: float = 0.0,
    model_under_pressure: str = DEFAULT_UNDER_PRESSURE,
    adoption: float = 0.0,
    out: str = "",
    record: str = "",
    record_text: bool = False,
    replay: str = "",
    max_requests: int | None = None,
    max_tokens: int | None = None,
    yes: bool = False,
    otlp: bool = False,
    metrics_file: str = "",
    verbose: bool = False,
    as_json: bool = False,
) -> None:
    """Ask the same questions under every alternative; show what each did to the caller, and what went on afterwards."""
    # What is left out on the command line is as `compare` of Python has it.
    given = {name: value for name, value in locals().items() if value not in ("", None)}
    if record_text and not record:
        raise ConfigurationError("--record-text keeps the text of a recording: give --record FOLDER too")
    if deadline_key != DEADLINE_KEY and not graph:
        raise ConfigurationError(
            "--deadline-key is of a graph of your own: name it too (--graph), or leave the key out"
        )
    if verbose and as_json:
        raise ConfigurationError("--verbose is for people, and --json has everything already; leave one out")
    if workers is not None and clock == "wall":
        raise ConfigurationError("--workers is for virtual time; on the wall clock use --side-by-side")
    if side_by_side is not None and clock == "virtual":
        raise ConfigurationError("--side-by-side is for the wall clock; in virtual time use --workers")
    folder = Path(out or f"results/{datetime.datetime.now(datetime.UTC):%Y%m%dT%H%M%SZ}-compare")

    study = _measured(given, folder, yes=yes, as_json=as_json)
    if side_by_side is not None and study.manifest["design"]["clock"] == "virtual":
        typer.echo("--side-by-side was not used: in virtual time the runs share nothing.", err=True)
    for note in notes_on_sending(study.manifest, len(study.runs)):
        typer.echo(note, err=True)
    if as_json:
        typer.echo(json.dumps(study_as_json(study, folder), indent=2))
    else:
        files = "summary.md, timeline.png, overrun.png, runs.parquet, calls.parquet, events.parquet, manifest.json"
        print_study(study, f"In {folder}: {files}", verbose=verbose)
    if study.runs["outcome"].astype("str").isin(ENDED_UNANSWERED).all() or control_failed(study.runs):
        raise typer.Exit(1)  # nothing was measured that a choice could rest on


def _measured(given: Mapping[str, Any], folder: Path, *, yes: bool, as_json: bool) -> Study:
    """The study, its progress shown. given: options by name. Raises: typer.Exit when it is interrupted."""
    shown = ProgressBar("runs", "measuring", shown=not as_json)
    try:
        from docmind_lab.experiments.comparison import run

        values = _keywords(given, inspect.signature(run.compare).parameters)
        with prints_on_stderr(on_terminal=as_json):
            return run.compare(
                **values,
                out=folder,
                progress=shown.show,
                before_sending=confirm_sending(yes=yes, hidden=shown.hidden),
            )
    except KeyboardInterrupt:
        shown.close()
        saved = (folder / "runs.parquet").exists()
        kept = f"the {shown.done} finished runs are in {folder}" if saved else "no run was finished, nothing is saved"
        typer.echo(f"docmind-lab: interrupted; {kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        shown.close()


def _keywords(given: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """What options mean as keywords of `compare` of Python. names: of its keywords."""
    from docmind_lab.core.budgets import Budget, Price
    from docmind_lab.views.telemetry import Telemetry

    settings = load_settings()
    values = {name: value for name, value in given.items() if name in names and name != "out"}
    values |= options.of_graph(given.get("context", ""), given.get("config", ""), given.get("resume"))
    limits: dict[str, Any] = {kind: given.get(f"budget_{kind}") for kind in ("tokens", "calls", "cost")}
    limits["price"] = Price.parse(given["price"]) if "price" in given else None
    timeout_s = given.get("decision_timeout")
    if timeout_s is None and options.TIMEOUT_VARIABLE in os.environ:
        timeout_s = settings.agents.decision_timeout
    telemetry = Telemetry(spans="otlp" if given["otlp"] else None, metrics_file=given.get("metrics_file"))
    return values | {
        "decision_timeout_s": timeout_s,
        "budget": Budget(**limits) if any(limit is not None for limit in limits.values()) else None,
        "cpu_charge": parse_charge(given["cpu_charge"]),
        "settings": settings,
        "telemetry": telemetry,
    }


def confirm_sending(
    *, yes: bool, hidden: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
) -> Callable[[str], None]:
    """Returns what shows the estimate of a live study and, on a terminal, asks whether to send its requests.

    hidden: makes room for the question on the screen.
    """

    def ask(estimate: str) -> None:
        with hidden():
            typer.echo(f"To be sent to the live endpoint: {estimate}.", err=True)
            if not yes and sys.stdin.isatty() and not typer.confirm("Send them?", err=True):
                typer.echo("docmind-lab: nothing was sent", err=True)
                raise typer.Exit(INTERRUPTED)

    return ask


def notes_on_sending(manifest: Mapping[str, Any], runs: int) -> Iterator[str]:
    """What the manifest of a study says of caps and replays, a sentence each. runs: that are in its tables."""
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
    if "replayed_calls" in manifest:
        from docmind_lab.experiments.recordings.account import ReplayAccount

        yield f"A replay: {ReplayAccount(**manifest['replayed_calls'])}."
