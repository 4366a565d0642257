"""Figure: a table of the outcomes of each fault under each alternative, coloured by whether the deadline held."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import HELD_WITHIN_S
from docmind_lab.tables.conditions import joined_runs
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots import look

# Tints of Okabe and Ito's blue and vermilion, apart in lightness as well as in hue: told apart by the colour-blind and
# on a grey print, with ink readable on both.
_HELD, _NOT_HELD = "#DCEBF5", "#F0A87C"
_LEGEND: Final = {
    _HELD: f"held: every caller was back within {look.seconds_text(HELD_WITHIN_S)} of the deadline",
    _NOT_HELD: "not held",
}


def fault_matrix_frame(*studies: StudyTables) -> pd.DataFrame:
    """Return the cells of the table: one row per alternative (and its options) and fault measured together.

    Columns: row (0, 1, … of alternative and options, in the order of every figure), label, alternative; column
    (0, 1, … of faults, in the order given), fault; runs, answered (late answers too), answered_in_time; outcomes (in
    words: one if all are alike, else counted); caller_overrun_median_s and caller_overrun_worst_s (a run that was not
    answered by its horizon counts with it), lower_bound (the median is one); held (no caller overran by more than
    `summary.HELD_WITHIN_S`).

    Raises: ConfigurationError for no studies or runs, several decision timeouts or other conditions but faults, a run
    that is there twice, and runs of one cell that retried differently.
    """
    if not studies:
        raise ConfigurationError("fault_matrix needs a study: pass one for each fault")
    runs = joined_runs(studies)
    if runs["run_id"].duplicated().any():
        raise ConfigurationError("a study is given twice: pass each once")
    faults = [str(fault) for fault in runs["fault"].unique()]
    together = look.comparable(runs, apart_from="fault").astype({"fault": "str"})
    cells = [
        {"row": row, "column": faults.index(str(fault)), **_cell(of_cell)}
        for (row, fault), of_cell in together.groupby(["group", "fault"])
    ]
    names = ["row", "label", "alternative", "column", "fault", "runs", "answered", "answered_in_time", "outcomes"]
    names += ["caller_overrun_median_s", "caller_overrun_worst_s", "lower_bound", "held"]
    return pd.DataFrame(cells).sort_values(["row", "column"], ignore_index=True)[names]


def fault_matrix(*studies: StudyTables, ax: look.Canvas = None) -> Axes:
    """Draw a table of outcomes: a row for each alternative, a column for each fault.

        fault_matrix(without, hanging, trickled)        one study for each fault, or several faults in one study

    A cell says the outcomes and the median caller overrun, ">" before a lower bound; bold where every run was answered
    in time. Its colour says whether the deadline held, which is another thing: a run that fails at once holds it too.
    Raises: ConfigurationError as `fault_matrix_frame`.
    """
    frame = fault_matrix_frame(*studies)
    rows, columns = frame.drop_duplicates("row"), frame.drop_duplicates("column").sort_values("column")
    ax = look.axes_for(ax, *_size(frame))
    for cell in look.rows_of(frame):
        _draw_cell(ax, cell)
    for row in range(len(rows)):
        for column in set(range(len(columns))) - set(frame.loc[frame["row"] == row, "column"]):
            _write(ax, "not measured", column, row)
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xticks(columns["column"], columns["fault"].replace("none", "no fault"))
    ax.set_yticks(rows["row"], rows["label"])
    ax.tick_params(length=0)
    ax.set_xlabel("fault")
    look.legend_below(ax, _legend(frame), columns=2)
    look.style(ax, "What became of each fault, and whether the deadline held", _context(studies))
    return ax


def _cell(runs: pd.DataFrame) -> dict[str, Any]:
    """Return the text and the colour of the cell for one alternative's runs under one fault."""
    first = runs.iloc[0]
    retries = sorted(set(runs["retries"].astype("str")))
    if len(retries) > 1:
        raise ConfigurationError(
            f"the runs of {' '.join(first['label'].split())} under fault {first['fault']} have several values of "
            f"retries ({', '.join(retries)}): pass studies with one"
        )
    outcomes = runs["outcome"].astype("str").value_counts(sort=False)
    unanswered = runs["returned_at_s"].isna()
    overrun = runs["caller_overrun_s"].where(~unanswered, runs["horizon_s"] - runs["decision_timeout_s"])
    words = {str(outcome).replace("_", " "): int(count) for outcome, count in outcomes.items()}
    return {
        "label": first["label"],
        "alternative": first["alternative"],
        "fault": first["fault"],
        "runs": len(runs),
        "answered": words.get("answered", 0),
        "answered_in_time": int(runs["answered_in_time"].sum()),
        "outcomes": next(iter(words)) if len(words) == 1 else ", ".join(f"{n} {what}" for what, n in words.items()),
        "caller_overrun_median_s": float(overrun.median()),
        "caller_overrun_worst_s": float(overrun.max()),
        "lower_bound": 2 * int(unanswered.sum()) >= len(runs),
        "held": bool(overrun.max() <= HELD_WITHIN_S),
    }


def _size(frame: pd.DataFrame) -> tuple[float, float]:
    """Return the width and height, in inches, at which 8 pt text fits in headings and cells."""
    widest = max(frame["fault"].str.len().max(), frame["outcomes"].str.len().max())
    width = 2.4 + frame["column"].nunique() * (0.2 + 0.066 * widest)
    return max(10.0, width), 2.0 + 0.42 * frame["row"].nunique()


def _draw_cell(ax: Axes, cell: Any) -> None:
    corner, name = (cell.column - 0.5, cell.row - 0.5), f"cell:{cell.row}:{cell.column}"
    colour = _HELD if cell.held else _NOT_HELD
    ax.add_patch(Rectangle(corner, 1.0, 1.0, facecolor=colour, edgecolor=look.PAPER, linewidth=2.0, gid=name))
    overrun = f"{'> ' if cell.lower_bound else ''}+{look.seconds_text(cell.caller_overrun_median_s)}"
    in_time = cell.answered_in_time == cell.runs
    _write(ax, f"{cell.outcomes}\n{overrun}", cell.column, cell.row, weight="bold" if in_time else "normal")


def _write(ax: Axes, text: str, column: int, row: int, *, weight: str = "normal") -> None:
    ax.text(column, row, text, color=look.INK, fontsize=look.SMALL_PT, fontweight=weight, ha="center", va="center")


def _context(studies: tuple[StudyTables, ...]) -> str:
    return look.context_of(joined_runs(studies))


def _legend(frame: pd.DataFrame) -> list[Artist]:
    """Return handles for the colours that occur, and a note on how to read a cell."""
    seen = {_HELD: frame["held"].any(), _NOT_HELD: not frame["held"].all()}
    handles: list[Artist] = [
        Patch(facecolor=colour, edgecolor=look.RULE, linewidth=0.5, label=_LEGEND[colour])
        for colour in seen
        if seen[colour]
    ]
    reading = ["second line: median of how far past the deadline the caller waited"]
    if (frame["answered_in_time"] == frame["runs"]).any():
        reading.append("bold: every run was answered in time")
    return handles + [look.legend_key(text) for text in reading]
