"""Figure: at which instants of a run a cut breaks something, and at which it leaves something behind."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from docmind_lab.core.text import count_of
from docmind_lab.views.plots import look

_TICKS: Final = 9
_STATUS: Final = {
    "holds": ("every invariant holds", "#C9CDD3", 0.5),
    "left": ("the alternative leaves something, as it says", "#D9A441", 0.7),
    "broken": ("an invariant is broken", "#B3261E", 0.8),
}
"""Worst status of a trial → what it means, colour and height of its mark; those that matter are drawn last."""


def cut_points(verdicts: pd.DataFrame, *, ax: look.Canvas = None) -> Axes:
    """Plot each cut of a crash test at its instant, a row for each alternative, coloured by the worst verdict on it.

    Args:
        verdicts: The table of a crash test: `crash_test(…).verdicts`.
        ax: Axes to draw on; None means a new figure.

    Returns:
        The axes.
    """
    trials = cut_frame(verdicts)
    names = list(dict.fromkeys(verdicts["alternative"]))
    axes = look.axes_for(ax, 9.0, 1.8 + 0.55 * len(names))
    # Side by side in their order: instants lie together, with seconds of a model call between them.
    instants = np.unique(trials["at_s"])
    for status, (_, colour, height) in _STATUS.items():
        some = trials[trials["status"] == status]
        rows = some["alternative"].map(names.index).astype("float64")
        places = np.searchsorted(instants, some["at_s"])
        axes.vlines(places, rows - height / 2, rows + height / 2, color=colour, linewidth=2.2)
    ticks = np.unique(np.linspace(0, len(instants) - 1, _TICKS).round().astype(int))
    axes.set_xticks(ticks, [f"{instants[place]:.3f}" for place in ticks])
    axes.set_yticks(range(len(names)), [name if name == "kill" else f"deadline, {name}" for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("cuts in their order, at their instant (virtual seconds from the start of the run)")
    seen = [status for status in _STATUS if (trials["status"] == status).any()]
    handles = [look.line_key(_STATUS[each][0], color=_STATUS[each][1], linewidth=4) for each in seen]
    look.legend_below(axes, handles, columns=3)
    broken = int((trials["status"] == "broken").sum())
    context = f"{count_of(len(trials), 'run')} cut; in {broken} of them an invariant is broken"
    look.style(axes, "Where along the run does a cut break something?", context)
    return axes


def cut_frame(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each cut: input_id, alternative, at_s, and the worst status of its invariants.

    Args:
        verdicts: The table of a crash test.
    """
    rank = {status: place for place, status in enumerate(_STATUS)}
    keys = ["input_id", "alternative", "at_s"]
    worst = verdicts.assign(rank=verdicts["status"].map(rank).fillna(-1)).groupby(keys, sort=False)
    rows = worst["rank"].max().reset_index()
    return rows.assign(status=rows.pop("rank").map({place: status for status, place in rank.items()}))
