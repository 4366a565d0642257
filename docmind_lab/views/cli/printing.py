"""Prints a study on a terminal, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from docmind_lab.views.cli.console import console

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from docmind_lab.findings.study import Study


# What a narrow terminal can do without, first to go first; every one of them is in the tables and in --json.
_DISPENSABLE = (
    "late tokens per run",
    "late calls per run",
    "overran by median (s)",
    "by median (s)",
    "source recall",
    "work went on",
    "partial",
    "timed out",
    "failed",
    "interrupted",
    "unfinished",
    "answered",
)
_GAP = 2


def table_of(frame: pd.DataFrame, width: int) -> tuple[Table, list[str]]:
    """Return a summary's display table within a width in characters, and the columns that did not fit."""
    from rich.table import Table

    part, left_out = frame, []
    for column in _DISPENSABLE:
        if _width_of(part) <= width:
            break
        if column in part:
            part = part.drop(columns=column)
            left_out.append(column)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    table.add_column("", no_wrap=True)
    for column in part.columns:
        table.add_column(column, justify="right", width=_width_of_column(part, column))
    for label, row in zip(part.index, part.to_numpy(), strict=True):
        table.add_row(str(label), *(str(value) for value in row))
    return table, left_out


def _width_of(frame: pd.DataFrame) -> int:
    labels = max((len(str(label)) for label in frame.index), default=0)
    return labels + _GAP + sum(_width_of_column(frame, column) + _GAP for column in frame.columns)


def _width_of_column(frame: pd.DataFrame, column: str) -> int:
    """Return the width of a column: headings wrap between words, the text of a cell does not."""
    return max([len(word) for word in column.split()] + [len(str(value)) for value in frame[column]])


def print_study(study: Study, where: str, *, verbose: bool = False) -> None:
    """Print the choice, a table, the reasons for the choice, and where the study is.

    verbose: print the full table and a sentence for each alternative too.
    """
    from docmind_lab.findings.summary import summarise

    summary = summarise(study.runs, study.manifest)
    out = console()
    out.print()
    out.print(summary.title)
    out.print()
    out.print(*summary.advice[:1], style="bold")
    out.print()
    table_frame, alike = (summary.display_table(), ()) if verbose else summary.short_table()
    table, left_out = table_of(table_frame, out.width)
    if len(table_frame.columns):
        out.print(table)
    if left_out:
        out.print(f"Columns left out: {', '.join(left_out)}; use a wider terminal, or --json.")
    for line in alike:
        out.print(line)
    out.print()
    for line in summary.advice[1:]:
        # Settings are pasted: a line that the terminal wraps is still one line.
        out.print(line, soft_wrap=line.startswith("Settings: "))
    if verbose and summary.sentences:
        out.print()
        for line in summary.sentences:
            out.print(f"• {line}")
    out.print()
    out.print(where, soft_wrap=True)


def study_as_json(study: Study, folder: Path) -> dict[str, object]:
    """Return the summary's rows and its advice as JSON types."""
    from docmind_lab.findings.summary import summarise

    summary = summarise(study.runs, study.manifest)
    rows = json.loads(summary.table.reset_index().to_json(orient="records"))
    return {
        "study_id": study.manifest["study_id"],
        "folder": str(folder),
        "title": summary.title,
        "advice": list(summary.advice),
        "alternatives": rows,
    }
