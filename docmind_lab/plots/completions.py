"""The share of runs that had been answered by each instant, of all runs."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from docmind_lab.plots.look import RULE, colour_of, deadline_line, dress, legend_below, new_axes
from docmind_lab.plots.selection import StudyTables, comparable, context_of, rows_of

# Until the deadline all alternatives do the same, and their curves coincide. Broad lines below narrow ones, each with
# dashes of its own, keep every one in sight.
_DASHES: Final = ("solid", "solid", (0, (6, 2)), (0, (4, 1.5, 1, 1.5)), (0, (2, 1.2)), (0, (1, 1)), (0, (8, 2, 2, 2)))


def completion_frame(study: StudyTables) -> pd.DataFrame:
    """The steps of the curves: from 0 s, a row for each run that was answered, and a last one at the horizon.

    Columns: group (0, 1, … of alternative and options), label, alternative, at_s, answered (runs answered by then, in
    time or late), runs (all runs of the alternative, whatever became of them), share (answered / runs).
    A partial answer, an error and an empty return are not answers.

    Raises: ConfigurationError for no runs, or several decision timeouts or other conditions, naming the column.
    """
    steps = []
    for _, runs in comparable(study.runs).groupby("group"):
        answered_at_s = np.sort(runs.loc[runs["outcome"] == "answered", "returned_at_s"].to_numpy())
        counts = np.arange(len(answered_at_s) + 1)
        step = pd.DataFrame({"at_s": [0.0, *answered_at_s, runs["horizon_s"].max()], "answered": [*counts, counts[-1]]})
        same = {name: runs[name].iloc[0] for name in ("group", "label", "alternative")}
        steps.append(step.assign(**same, runs=len(runs)))
    frame = pd.concat(steps, ignore_index=True)
    frame["share"] = frame["answered"] / frame["runs"]
    return frame[["group", "label", "alternative", "at_s", "answered", "runs", "share"]]


def completion(study: StudyTables, *, ax: Axes | None = None) -> Axes:
    """Axes with the share of runs answered by each instant: a step curve for each alternative, and the deadline.

    All runs are in the denominator, so a curve ends where answers end, not at 100 %.
    Raises: ConfigurationError as `completion_frame`.
    """
    frame = completion_frame(study)
    deadline_s = float(study.runs["decision_timeout_s"].iloc[0])
    groups = frame["group"].nunique()
    if ax is None:
        ax = new_axes(10.0, 5.0)
    handles = []
    for last in rows_of(frame.drop_duplicates("group", keep="last")):
        steps, place = frame[frame["group"] == last.group], last.group
        (line,) = ax.step(
            steps["at_s"],
            steps["share"],
            where="post",
            color=colour_of(last.alternative),
            linewidth=4.2 - 2.8 * place / max(1, groups - 1),
            linestyle=_DASHES[place % len(_DASHES)],
            label=f"{last.label}: {last.answered} of {last.runs} answered",
            gid=f"completion:{place}",
        )
        handles.append(line)
    deadline_line(ax, deadline_s)
    # Nothing changes after the last answer; the frame goes on to the horizon.
    changes = frame.loc[frame["at_s"] < study.runs["horizon_s"].max(), "at_s"]
    ax.set_xlim(0.0, 1.15 * max(deadline_s, float(changes.max())))
    ax.set_ylim(0.0, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    ax.grid(axis="y", color=RULE, linewidth=0.5, alpha=0.5)
    ax.set_xlabel("seconds since the run's start (s)")
    ax.set_ylabel("runs answered (% of all runs)")
    legend_below(ax, handles, columns=2)
    dress(ax, "The share of runs answered by each instant", context_of(study.runs))
    return ax
