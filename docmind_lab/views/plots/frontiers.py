"""Figure: what a longer decision timeout buys in answers and sources."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import stats

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.statistics.shares import wilson_bounds
from docmind_lab.tables.conditions import require_one_condition, with_arms
from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots import look

MEASURES: Final = {
    "answered_in_time": "runs answered in time (% of all runs)",
    "source_recall": "source recall returned to the caller (% of the gold topics)",
    "recall_at_deadline": "source recall found by the deadline (% of the gold topics)",
}
"""What may be drawn against the decision timeout, and the label of its axis. Each is 0 to 1 for a run."""

_TIMEOUT: Final = "decision_timeout_s"
# Arms do much the same until a deadline cuts them, and their lines coincide: each stands a little aside of the next.
_ASIDE: Final = 0.012


def frontier_frame(study: StudyTables, measure: str = "answered_in_time") -> pd.DataFrame:
    """Return the points of the lines: one row per arm and decision timeout.

    Columns: group (0, 1, … of arms, in the order of every figure), arm, alternative, decision_timeout_s, runs, mean,
    low, high, method. The bounds are Wilson's at 95 %, of a share of runs. For recall they are conservative: a mean of
    numbers from 0 to 1 varies no more than a share of the same size (Bhatia and Davis (2000), American Mathematical
    Monthly 107:353), and an interval of runs that are all alike keeps its width.

    Args:
        study: A study, or any object with the frames `runs`, `calls` and `events`.
        measure: "answered_in_time" or another of the measures of a run.

    Raises:
        ConfigurationError: Another measure, a single decision timeout, other conditions that vary (the message names
            the columns), or a measure that is not known for some run.
    """
    if measure not in MEASURES:
        raise ConfigurationError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
    runs = _runs_of_sweep(study.runs)
    if runs[measure].isna().any():
        raise ConfigurationError(
            f"{measure} is not known for {int(runs[measure].isna().sum())} runs: draw another measure"
        )
    rows = []
    for (arm, _), group in runs.groupby(["arm", _TIMEOUT], observed=True, sort=True):
        values = group[measure].to_numpy(dtype=np.float64)
        row = {"arm": str(arm), "alternative": str(group["alternative"].iloc[0])}
        row_at = {_TIMEOUT: float(group[_TIMEOUT].iloc[0])}
        rows.append(row | row_at | {"runs": len(values), "mean": float(values.mean()), **_bounds(values, measure)})
    frame = pd.DataFrame(rows)
    frame.insert(0, "group", pd.factorize(frame["arm"])[0])
    return frame


def frontier(
    study: StudyTables,
    measure: str = "answered_in_time",
    *,
    ax: look.Canvas = None,
) -> Axes:
    """Plot a measure against the decision timeout: one line per arm through its means, bars for their intervals.

    Small points are runs (of recall: each run's own; of answers: in time above, not in time below). The scale of
    budgets is logarithmic, since it is ratios of budgets that matter; lines that coincide stand a little apart.

    Other parameters are those of `frontier_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame = frontier_frame(study, measure)
    runs = _runs_of_sweep(study.runs)
    ax = look.axes_for(ax, 10.0, 5.6)
    groups = int(frame["group"].nunique())
    handles: list[Artist] = []
    for group, of_arm in frame.groupby("group"):
        place = int(str(group))
        aside = (1 + _ASIDE) ** (place - (groups - 1) / 2)
        first = next(look.rows_of(of_arm))
        _draw_runs(ax, runs[runs["arm"] == first.arm], measure, place, aside)
        handles.append(_draw_line(ax, of_arm, first, place, aside))
    ax.set_xscale("log")
    look.fixed_ticks(ax, sorted(frame[_TIMEOUT].unique()))
    look.percent_ticks(ax)
    ax.set_ylim(-0.06, 1.06)
    look.faint_grid(ax, "y")
    ax.set_xlabel("decision timeout (s, logarithmic)")
    ax.set_ylabel(MEASURES[measure])
    look.legend_below(ax, handles, columns=3)
    look.note(ax, f"bars: {frame['method'].iloc[0]}", (1.0, 1.0), (0.0, 3.0), ha="right", va="bottom")
    look.style(ax, "What a longer decision timeout buys", look.context_of(runs))
    return ax


def _runs_of_sweep(runs: pd.DataFrame) -> pd.DataFrame:
    if runs[_TIMEOUT].nunique() < 2:
        raise ConfigurationError(f"a frontier needs several values of {_TIMEOUT}: measure a sweep of them")
    require_one_condition(runs, _TIMEOUT)
    return with_arms(runs)


def _bounds(values: np.ndarray[Any, Any], measure: str) -> dict[str, Any]:
    low, high = wilson_bounds(values.mean(), len(values), float(stats.norm.ppf(0.975)))
    of_a_mean = "" if measure == "answered_in_time" else ", conservative for a mean"
    return {"low": float(low), "high": float(high), "method": f"95 % Wilson interval{of_a_mean}"}


def _draw_runs(ax: Axes, runs: pd.DataFrame, measure: str, place: int, aside: float) -> None:
    # Runs lie on few levels (a share of two or three topics): spread, so that one can see how many there are.
    spread = 0.05 * look.spread_of_seeds(runs["seed"])
    style: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.4, "markeredgewidth": 0.0}
    colour = look.colour_of(str(runs["alternative"].iloc[0]))
    values = runs[measure].astype("float64") + spread
    ax.plot(runs[_TIMEOUT] * aside, values, color=colour, alpha=0.45, zorder=1.5, gid=f"runs:{place}", **style)


def _draw_line(ax: Axes, of_arm: pd.DataFrame, first: Any, place: int, aside: float) -> Line2D:
    at, colour = of_arm[_TIMEOUT] * aside, look.colour_of(first.alternative)
    ax.vlines(at, of_arm["low"], of_arm["high"], color=colour, linewidth=1.4, zorder=2, gid=f"intervals:{place}")
    (line,) = ax.plot(
        at,
        of_arm["mean"],
        color=colour,
        linewidth=1.6,
        linestyle=look.DASHES[place % len(look.DASHES)],
        marker="o",
        markersize=6.5,
        markeredgecolor=look.PAPER,
        zorder=3,
        label=" ".join(first.arm.split()),
        gid=f"frontier:{place}",
    )
    return line
