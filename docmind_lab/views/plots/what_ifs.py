"""Figure: what another decision timeout would have done to recorded runs, and what each alternative leaves behind."""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from docmind_lab.core.text import one_line
from docmind_lab.findings.what_if.what_if import WhatIf
from docmind_lab.views.plots import look


def what_if_frontier(result: WhatIf, target: float = 0.95, *, ax: look.Canvas = None) -> tuple[Axes, Axes]:
    """Plot the share in time against the decision timeout, and below it the late seconds of each alternative.

    Args:
        result: The answers, at several decision timeouts.
        target: Share of runs that should be answered in time: a line.
        ax: Axes of the upper half, on a figure of its own; None means a new figure.

    Returns:
        The axes of the upper and of the lower half.
    """
    upper = look.axes_for(ax, 9.0, 6.4)
    figure = upper.figure
    grid = figure.add_gridspec(2, 1, height_ratios=[3, 2])
    upper.set_subplotspec(grid[0])
    lower = figure.add_subplot(grid[1], sharex=upper)
    _draw_shares(upper, result, target)
    handles = _draw_late(lower, result.frame)
    if handles:
        look.legend_below(lower, handles, columns=2)
    for each in (upper, lower):
        each.set_xscale("log")
        look.fixed_ticks(each, _ticks(result))
        look.faint_grid(each, "y")
    runs, sessions = len(result.traces), result.traces.runs["session"].nunique()
    look.style(upper, "What if the deadline were another?", f"{runs} recorded runs of {sessions} sessions, replayed")
    look.style(lower, "", "")
    return upper, lower


def _ticks(result: WhatIf) -> list[float]:
    """Return some of the decision timeouts, far enough from each other to be read."""
    chosen: list[float] = []
    for timeout_s in sorted(result.frame["decision_timeout_s"].unique()):
        if not chosen or timeout_s > chosen[-1] * 1.12:
            chosen.append(float(timeout_s))
    return chosen


def _draw_shares(ax: Axes, result: WhatIf, target: float) -> None:
    curve = result.curve
    at_s = curve["decision_timeout_s"].to_numpy()
    _draw_band(ax, curve)
    ax.plot(at_s, curve["share"], color=look.INK, linewidth=1.4, marker="o", markersize=3.5)
    ax.axhline(target, color=look.RULE, linewidth=0.9, linestyle=(0, (4, 2)))
    best = result.smallest(target)
    if not math.isnan(best):
        ax.axvline(best, color=look.RULE, linewidth=0.9)
        look.note(ax, f"{best:g} s", (best, 0.02), (4.0, 0.0), x_in="data", y_in="data", va="baseline")
    look.percent_ticks(ax)
    ax.set_ylim(0, 1.03)
    ax.set_ylabel("answered in time (% of runs)")
    look.note(ax, f"band: {result.confidence:.0%}, by session", (1.0, 1.0), (0.0, 3.0), ha="right", va="bottom")


def _draw_band(ax: Axes, curve: pd.DataFrame) -> None:
    """Draw the interval of a share; hatched and named where the share is not known."""
    at_s, known = curve["decision_timeout_s"].to_numpy(), curve["share"].notna().to_numpy()
    low, high = curve["low"].to_numpy(), curve["high"].to_numpy()
    ax.fill_between(at_s[known], low[known], high[known], color=look.INK, alpha=0.15, linewidth=0)
    if known.all():
        return
    until_s = float(curve["known_until_s"].iloc[0])
    unknown_s = [max(until_s, at_s[known][-1]) if known.any() else until_s, *at_s[~known]]
    floor = [low[~known][0], *low[~known]]
    ax.fill_between(unknown_s, floor, 1.0, facecolor="none", edgecolor=look.RULE, hatch="//", alpha=0.4, linewidth=0)
    middle = ((float(unknown_s[0]) * float(unknown_s[-1])) ** 0.5, (float(floor[0]) + 1.0) / 2)
    look.note(ax, "not known", middle, (0.0, 0.0), x_in="data", y_in="data", ha="center", va="center")


def _draw_late(ax: Axes, frame: pd.DataFrame) -> list[Line2D]:
    """Draw a line per group of alternatives that leave the same behind; a note where that is not known."""
    least = ", at least" if frame["lower_bounds"].any() else ""
    ax.set_ylabel(f"late work{least} (s a run)")
    ax.set_xlabel("decision timeout (s, logarithmic)")
    if frame["busy_after_s"].isna().all():
        ax.set_yticks([])
        words = "not known: no call was recorded with its start"
        look.note(ax, words, (0.5, 0.5), (0.0, 0.0), ha="center")
        return []
    groups: dict[tuple[float, ...], list[str]] = {}
    lines: dict[tuple[float, ...], tuple[pd.DataFrame, str]] = {}
    for arm, rows in frame.groupby("arm", sort=False):
        key = tuple(rows["busy_after_s"].round(6))
        groups.setdefault(key, []).append(one_line(str(arm)))
        lines.setdefault(key, (rows, str(rows["alternative"].iloc[0])))
    handles = []
    for place, (key, arms) in enumerate(groups.items()):
        rows, alternative = lines[key]
        (handle,) = ax.plot(
            rows["decision_timeout_s"],
            rows["busy_after_s"],
            color=look.colour_of(alternative),
            linestyle=look.DASHES[place % len(look.DASHES)],
            linewidth=1.4,
            label=", ".join(arms),
        )
        handles.append(handle)
    # A little below zero, so that a line of nothing is seen.
    ax.set_ylim(bottom=-0.03 * max(float(frame["busy_after_s"].max()), 1e-3))
    return handles
