"""`docmind-lab recommend`: how long the decision timeout should be, from a finished study."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from docmind_lab.interfaces.cli.console import console, json_safe


def recommend(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of the study, finished or not.")],
    target: Annotated[
        float, typer.Option(help="Share of runs that should be answered in time, above 0, below 1.")
    ] = 0.95,
    confidence: Annotated[float, typer.Option(help="How sure to be of it, above 0, below 1.")] = 0.95,
    as_json: Annotated[bool, typer.Option("--json", help="Print the recommendation as JSON and nothing else.")] = False,
) -> None:
    """Name the smallest decision timeout that is sure to have the target answered in time, for each alternative.

    Or say how many more runs it takes to be sure. Exit code 1 where nothing can be recommended.
    """
    # Function-level: statistics take seconds to import, and --help must not.
    from docmind_lab.analysis.study_folder import load  # noqa: PLC0415

    found = load(folder).recommend(target, confidence)
    if as_json:
        rows = json_safe(found.frame.astype(object).to_dict("records"))
        shown = {"target": target, "confidence": confidence, "alternatives": rows, "choice": found.words.choice}
        typer.echo(json.dumps(shown | {"settings": found.settings, "sentences": found.sentences}, indent=2))
    else:
        out = console()
        for line in found.words.choice:
            out.print(line, style="bold")
        if found.settings:
            out.print(f"Settings: {found.settings}", soft_wrap=True)
        out.print()
        out.print(found.words.title)
        for line in found.sentences:
            out.print(f"• {line}")
    if not (found.frame["verdict"] == "reached").any():
        raise typer.Exit(1)
