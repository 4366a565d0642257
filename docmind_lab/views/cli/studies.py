"""`docmind-lab show`, `recommend`, `report`, `diff` and `watch`: what is done with finished studies."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.core.errors import ConfigurationError, NoSuchRecord
from docmind_lab.experiments.world_options import nouns_of
from docmind_lab.views.cli.console import console, json_safe, load_settings, print_finding, showing_progress, whole
from docmind_lab.views.cli.doctor import OF_RUNS, add_rows
from docmind_lab.views.cli.fields_as_options import Given, takes

if TYPE_CHECKING:
    from docmind_lab.findings.study import Study

RESULTS = "results"


def show(
    run_id: Annotated[str, typer.Argument(help="Id of the run, or how it ends, such as hard_timeout-7.")],
    study: Annotated[
        str, typer.Option(help="Folder of the study; the newest one under results/ that has the run when left out.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run's rows as JSON and nothing else.")] = False,
) -> None:
    """Show what happened in one run of a study: its calls on a line of time, the deadline, and what went on after."""
    from docmind_lab.findings.run_timeline import RunTimeline

    timeline = RunTimeline.of(_study_with(run_id, study), run_id)
    if as_json:
        rows = {"run": timeline.run, "calls": timeline.calls, "events": timeline.events}
        typer.echo(json.dumps(json_safe(rows), indent=2))
        return
    out = console()
    out.print(timeline.title(), style="bold", soft_wrap=True)
    out.print()
    for line in timeline.lines(out.width):
        out.print(line, soft_wrap=True)
    out.print()
    for line in timeline.notes():
        out.print(line, soft_wrap=True)


def _study_with(run_id: str, folder: str) -> Study:
    from docmind_lab.findings.study import MANIFEST, Study

    if folder:
        return Study.load(folder)
    manifests = sorted(Path(RESULTS).glob(f"*/{MANIFEST}"), reverse=True)
    for manifest in manifests:
        study = Study.load(manifest.parent)
        if any(str(known).endswith(run_id) for known in study.runs["run_id"]):
            return study
    looked = f"none of the {len(manifests)} studies" if manifests else "no study"
    raise NoSuchRecord(
        f"{looked} under {RESULTS}/ has a run {run_id!r}; name its folder with --study, or run docmind-lab compare"
    )


@takes("graph", "agent", "inputs", *OF_RUNS)
def recommend(
    options: Given,
    folder: Annotated[
        str, typer.Argument(metavar="[DIR]", help="Folder of a study, finished or not; without one, name a graph.")
    ] = "",
    target: Annotated[
        float, typer.Option(help="Share of runs that should be answered in time, above 0, below 1.")
    ] = 0.95,
    confidence: Annotated[float, typer.Option(help="How sure to be of it, above 0, below 1.")] = 0.95,
    alternatives: Annotated[
        str, typer.Option(help="Of a graph, those in question, such as A,E; all when left out.")
    ] = "",
    runs: Annotated[int | None, typer.Option(help="Of a graph, runs of each alternative and timeout.")] = None,
    out: Annotated[str, typer.Option(help="Of a graph, a folder for the study.")] = "",
    write_endpoints: Annotated[
        str, typer.Option(help="File to which rows are added for what no simulated service answers (TOML).")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the recommendation as JSON and nothing else.")] = False,
) -> None:
    """Name the smallest decision timeout that is sure to have the target answered in time, for each alternative.

    Of a study's folder; or, with --graph or --agent, of a system of your own, which is examined and measured for it.
    Says what is missing where that is open. Exit code 1 where nothing can be recommended.
    """
    if not folder:
        given = {"alternatives": alternatives or None, "runs": runs, "out": out or None}
        _advise(
            options,
            {name: value for name, value in given.items() if value is not None}
            | {"target": target, "confidence": confidence},
            write_endpoints,
            as_json,
        )
        return
    if options or alternatives or runs or out or write_endpoints:
        raise ConfigurationError("a folder has its runs: leave the options of a graph out, or the folder")
    from docmind_lab.findings.study import Study

    result = Study.load(folder).recommend(target, confidence)
    print_finding(result.finding(in_python=False), as_json=as_json)
    if not (result.frame["verdict"] == "reached").any():
        raise typer.Exit(1)


def _advise(options: Given, values: dict[str, Any], write_endpoints: str, as_json: bool) -> None:
    """Examine and measure a system of the user's own, and print the advice."""
    if not {"graph", "agent"} & options.keys():
        raise ConfigurationError("name a folder of a study, or a graph and its inputs with --graph and --inputs")
    load_settings()
    from docmind_lab.experiments.advice import recommend as advise

    with showing_progress("runs", "measuring", as_json=as_json) as bar:
        advice = whole(advise(**nouns_of(options), **values, progress=bar.show))
    if write_endpoints:
        add_rows(write_endpoints, advice.unanswered)
    print_finding(advice.finding(), as_json=as_json, is_wrapped=True)
    if not advice.alternative:
        raise typer.Exit(1)


def report(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    out: Annotated[
        str, typer.Option(help="File to write, ending in .html; report.html in the study's folder when left out.")
    ] = "",
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write what a study says: its answer, tables with intervals, figures with their numbers, and what it cannot say.

    It is one HTML page that needs no network: figures and styles are inside.
    """
    from docmind_lab.findings.study import Study
    from docmind_lab.views.reports import build_report, write_report

    written = write_report(build_report(Study.load(folder)), out or Path(folder) / "report.html")
    typer.echo(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    if show:
        webbrowser.open(written.resolve().as_uri())


REGRESSED = 1
"""The exit code where something is worse, if that was asked for."""


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="Folder of the first study.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Folder of the second study.")],
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit code 1 if a corrected difference is for the worse, or if there are too few runs to show one.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the differences as JSON and nothing else.")] = False,
) -> None:
    """Compare two studies: what their arms did, B minus A, then design, settings, versions and machine.

    Exit code 0 whatever differs, unless --fail-on-regression is given.
    """
    from docmind_lab.findings.diff import diff as diff_of
    from docmind_lab.findings.study import Study

    result = diff_of(Study.load(before), Study.load(after))
    print_finding(result.finding(), as_json=as_json)
    if fail_on_regression and result.verdict != "no regression shown":
        raise typer.Exit(REGRESSED)


def watch(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="Folder of the study.")],
    spans: Annotated[
        list[str],
        typer.Option(
            help="File of OTLP JSON, as the OpenTelemetry collector's file exporter writes it, or a folder of them; "
            "may be given several times."
        ),
    ],
    workflow: Annotated[
        str, typer.Option(help="Name of the graph, where the spans are of several; the only one when left out.")
    ] = "",
    fail_if_worse: Annotated[
        bool,
        typer.Option("--fail-if-worse", help="Exit code 1 if production is worse, or nothing could be compared."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON and nothing else.")] = False,
) -> None:
    """Say whether enforced calls in production behave as a study said: by alternative and limit, with intervals.

    The spans are those of enforce(on_result=CallTelemetry("name")). Exit code 0 whatever they say, unless
    --fail-if-worse is given.
    """
    from docmind_lab.findings.study import Study
    from docmind_lab.findings.watch import read_enforced_calls
    from docmind_lab.findings.watch import watch as watch_of

    calls = read_enforced_calls(spans)
    if workflow:
        names = sorted(set(calls["workload"]))
        calls = calls[calls["workload"] == workflow]
        if calls.empty:
            raise ConfigurationError(f"--workflow: no call is of {workflow!r}; choose among {', '.join(names)}")
    result = watch_of(Study.load(study), calls)
    print_finding(result.finding(), as_json=as_json)
    if fail_if_worse and result.verdict in ("regressed", "nothing to compare"):
        raise typer.Exit(REGRESSED)
