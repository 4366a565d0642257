"""`docmind-lab policies STUDY.toml`: policies for the time of calls, ranked by regret."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.interfaces.cli.console import INTERRUPTED, ProgressBar, console, json_safe, load_settings, starting

if TYPE_CHECKING:
    from docmind_lab.analysis.regret import PolicyRanking


def policies(
    study: Annotated[str, typer.Argument(help="TOML file of the study, as sweep takes it.", metavar="STUDY.toml")],
    out: Annotated[
        str,
        typer.Option(help="Folder for the study and its probe; run again, it goes on from there."),
    ] = "",
    workers: Annotated[int | None, typer.Option(help="Processes; one on each core when left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the ranking as JSON and nothing else.")] = False,
) -> None:
    """Rank policies by regret: how far their answers are from the best that knew all latencies.

    The study names policies in its alternatives or in the factor `policies`. A second study, the probe, makes every
    call of the same runs twice at once, and so knows the shorter of two latencies. A file with a [load] table is a load
    study.
    """
    with starting(shown=not as_json):
        # Function-level: the stack takes seconds to import, and --help must not.
        from docmind_lab.experiments.load import load_options  # noqa: PLC0415
        from docmind_lab.experiments.policy_ranking import rank_by_regret, rank_load_by_regret  # noqa: PLC0415
        from docmind_lab.experiments.sweeps.study_files import read_study_file  # noqa: PLC0415

    values: Mapping[str, Any] = read_study_file(study)
    shown = ProgressBar("queries" if "load" in values else "runs", "measuring", shown=not as_json)
    computing: dict[str, Any] = {"workers": workers, "settings": load_settings(), "progress": shown.show}
    try:
        ranking = (
            rank_load_by_regret(load_options(values["load"]), **computing)
            if "load" in values
            else rank_by_regret(study, out=out or None, **computing)
        )
    except KeyboardInterrupt:
        typer.echo("docmind-lab: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        shown.close()
    if as_json:
        typer.echo(json.dumps({"ranking": json_safe(ranking.rows())}, indent=2))
        return
    _print(ranking)


def _print(ranking: PolicyRanking) -> None:
    screen = console()
    for title, lines in ranking.sections():
        screen.print(title, style="bold", soft_wrap=False)
        for line in lines:
            screen.print(line, markup=False, soft_wrap=True, highlight=False)
        screen.print()
