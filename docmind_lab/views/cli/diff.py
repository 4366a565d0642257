"""`docmind-lab diff A B`: what changed between two studies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docmind_lab.views.cli.console import console, json_safe

if TYPE_CHECKING:
    import pandas as pd

    from docmind_lab.findings.diff import StudyDiff

REGRESSED = 1
# A profile's quantiles are for a machine: --json has them whole.
_LONGEST_VALUE = 60


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
    """Compare two studies: design, settings, versions and machine, then what their arms did, B minus A.

    Exit code 0 whatever differs, unless --fail-on-regression is given.
    """
    from docmind_lab.findings.diff import diff as diff_of
    from docmind_lab.findings.study_folder import load

    result = diff_of(load(before), load(after))
    if as_json:
        typer.echo(json.dumps(json_safe(_as_json(result)), indent=2))
    else:
        _print(result)
    if fail_on_regression and result.verdict != "no regression shown":
        raise typer.Exit(REGRESSED)


def _as_json(found: StudyDiff) -> dict[str, Any]:
    return {
        "fields": found.fields.to_dict("records"),
        "effects": found.effects.astype(object).to_dict("records"),
        "only_before": found.only_before,
        "only_after": found.only_after,
        "not_compared": found.not_compared,
        "sentences": found.sentences,
        "regressed": found.regressed,
        "verdict": found.verdict,
    }


def _print(found: StudyDiff) -> None:
    out = console()
    if found.fields.empty:
        out.print("Design, settings, versions and machine are the same.")
    else:
        out.print("What the studies are made of", style="bold")
        for row in found.fields.to_dict("records"):
            what = f"{row['section']} {row['field']}: {_short(row['before'])} → {_short(row['after'])}"
            out.print(f"  {what}", markup=False, soft_wrap=True)
    out.print()
    out.print("What the arms did", style="bold")
    out.print(f"  {found.verdict_text}", markup=False, soft_wrap=True)
    for line in found.sentences:
        out.print(f"  {line}", markup=False, soft_wrap=True)
    for what, names in (
        ("In A only", found.only_before),
        ("In B only", found.only_after),
        ("Not compared", found.not_compared),
    ):
        if names:
            out.print(f"{what}: {'; '.join(names)}", markup=False, soft_wrap=True)
    if found.effects["difference"].any():
        out.print()
        out.print(_table(found))


def _short(text: object) -> str:
    value = str(text) or "(none)"
    return value if len(value) <= _LONGEST_VALUE else f"{value[: _LONGEST_VALUE - 1]}…"


def _table(found: StudyDiff) -> Any:
    from rich.table import Table

    from docmind_lab.core.text import one_line
    from docmind_lab.findings.diff import MEASURES

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in (*(column.replace("_", " ") for column in found.apart), "arm", "measure"):
        table.add_column(name)
    for name in ("A", "B", "B − A", "95 %", "p, corrected"):
        table.add_column(name, justify="right")
    moved: pd.DataFrame = found.effects[found.effects["difference"] != 0]
    for row in moved.to_dict("records"):
        digits = MEASURES[row["measure"]].digits
        cells = [str(row[column]) for column in found.apart]
        cells += [one_line(row["arm"]), MEASURES[row["measure"]].words]
        cells += [f"{row['before']:.{digits}f}", f"{row['after']:.{digits}f}", f"{row['difference']:+.{digits}f}"]
        cells += [
            f"[{row['low']:+.{digits}f}, {row['high']:+.{digits}f}]".replace("[", r"\["),
            f"{row['p_corrected']:.3f}",
        ]
        table.add_row(*cells)
    return table
