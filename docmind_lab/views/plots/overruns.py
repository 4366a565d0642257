"""Figure: how far past the deadline the caller waited and the work went on, for every run."""

from __future__ import annotations

import math
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots import look

_OVERRUNS: Final = ("caller", "work")
# Overruns span 0 (in time) to the horizon. The scale is linear up to the power of ten below the least overrun, which
# gives 0 a place, and logarithmic above, so that the runs that overran have the axis. Below a millisecond a wall clock
# tells scheduling, not enforcement.
_LEAST_S: Final = 0.001


def overrun_frame(study: StudyTables) -> pd.DataFrame:
    """Return the points of the plot: two rows per run, one for each overrun.

    Columns: group (0, 1, … of arms), label, alternative, run_id, seed, overrun (caller | work),
    overrun_s (0 in time), lower_bound (caller: no answer by the horizon; work: still busy then; overrun_s is then that
    of the horizon), jitter (−0.5 to 0.5, fixed by the rank of the seed, so that one question lies at one height).

    Args:
        study: A study, or any object with the frames `runs`, `calls` and `events`.

    Raises:
        ConfigurationError: No runs, or several decision timeouts or other conditions; the message names the column.
    """
    runs = look.comparable(study.runs)
    at_horizon_s = runs["horizon_s"] - runs["decision_timeout_s"]
    unanswered = runs["returned_at_s"].isna()
    caller = runs.assign(
        overrun="caller", overrun_s=runs["caller_overrun_s"].where(~unanswered, at_horizon_s), lower_bound=unanswered
    )
    work = runs.assign(
        overrun="work", overrun_s=runs["work_overrun_s"], lower_bound=runs["work_censored"].astype("bool")
    )
    frame = pd.concat([caller, work], ignore_index=True)
    frame["overrun"] = pd.Categorical(frame["overrun"], categories=_OVERRUNS)
    frame["jitter"] = look.spread_of_seeds(frame["seed"])
    columns = ["group", "label", "alternative", "run_id", "seed", "overrun", "overrun_s", "lower_bound", "jitter"]
    return frame.sort_values(["group", "overrun", "seed", "run_id"], ignore_index=True)[columns]


def overrun_summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the summary of `overrun_frame` drawn over its points: one row per alternative and overrun.

    Columns: group, label, alternative, overrun, runs, past (how many of them went past the deadline), lower_bounds (how
    many of those only show a lower bound), and of those past it median_s, low_s and high_s (least and greatest, not a
    confidence interval; NaN for none) and median_is_lower_bound. Lower bounds count with the horizon, where they are
    the greatest there can be, so a median is exact unless they are half of the runs past the deadline or more.

    Args:
        frame: Of `overrun_frame`.
    """
    keys = ["group", "label", "alternative", "overrun"]
    rows = []
    for key, points in frame.groupby(keys, observed=True, sort=True):
        past = points.loc[points["overrun_s"] > 0, "overrun_s"]
        bounds = int(points["lower_bound"].sum())
        measures = {
            "runs": len(points),
            "past": len(past),
            "lower_bounds": bounds,
            "median_s": float(past.median()),
            "low_s": float(past.min()),
            "high_s": float(past.max()),
            "median_is_lower_bound": 0 < len(past) <= 2 * bounds,
        }
        rows.append({**dict(zip(keys, key, strict=True)), **measures})
    return pd.DataFrame(rows)


def overrun(study: StudyTables, *, ax: look.Canvas = None) -> Axes:
    """Plot the caller overrun and the work overrun of every run, in a pair of rows for each alternative.

    Points are runs; the upright line is the median of those past the deadline, the whisker their range. Runs without
    an answer by the horizon, and work that was still going on, are triangles at the horizon that point to where they
    would be; a text counts them. The scale is linear up to the least overrun and logarithmic above.

    Other parameters are those of `overrun_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    points = overrun_frame(study)
    summary = overrun_summary(points)
    groups = summary["group"].nunique()
    ax = look.axes_for(ax, 10.0, 1.9 + 0.8 * groups)
    look.row_bands(ax, groups)
    for row in look.rows_of(summary):
        of_row = points[(points["group"] == row.group) & (points["overrun"] == row.overrun)]
        _draw_row(ax, row, of_row)
    _draw_scale(ax, points)
    middles = (_middle(row.group, row.overrun) for row in look.rows_of(summary))
    look.label_rows(ax, groups, middles, summary["overrun"])
    for row in look.rows_of(summary.drop_duplicates("group")):
        look.note(ax, row.label, (0.0, row.group), (-50.0, 0.0), y_in="data", ha="right", weight="bold")
    linear = look.seconds_text(_linear_below(points))
    ax.set_xlabel(f"overrun: time past the deadline (ms, s; linear up to {linear}, logarithmic above)")
    handles = _legend(bool(points["lower_bound"].any()))
    look.legend_below(ax, handles, columns=4 if len(handles) == 4 else 3)
    look.note(ax, "past the deadline", (1.0, 1.0), (12.0, 3.0), va="bottom")
    look.style(ax, "How far past the deadline the caller waited, and the work went on", look.context_of(study.runs))
    return ax


def _middle(group: int, overrun: str) -> float:
    return group - 0.22 + 0.44 * _OVERRUNS.index(overrun)


def _draw_row(ax: Axes, row: Any, points: pd.DataFrame) -> None:
    middle, colour = _middle(row.group, row.overrun), look.colour_of(row.alternative)
    style: dict[str, Any] = {"linestyle": "none", "clip_on": False, **_point_style(row.overrun, colour)}
    for bound, subset in points.groupby("lower_bound"):
        heights = middle + 0.32 * subset["jitter"]
        shape = {"marker": ">", "markersize": 6.5, "markeredgecolor": colour} if bound else {}
        gid = f"{'bounds' if bound else 'points'}:{row.group}:{row.overrun}"
        ax.plot(subset["overrun_s"], heights, gid=gid, zorder=3, **{**style, **shape})
    if row.past:
        gid = f"range:{row.group}:{row.overrun}"
        ax.plot([row.low_s, row.high_s], [middle, middle], color=look.INK, linewidth=1.0, zorder=2.5, gid=gid)
        gid = f"median:{row.group}:{row.overrun}"
        span = [middle - 0.2, middle + 0.2]
        ax.plot([row.median_s] * 2, span, color=look.INK, linewidth=2.2, zorder=2.8, gid=gid, clip_on=False)
    look.note(ax, _row_note(row), (1.0, middle), (12.0, 0.0), y_in="data")


def _row_note(row: Any) -> str:
    if not row.past:
        return f"0 of {row.runs}"
    bound = "> " if row.median_is_lower_bound else ""
    text = f"{row.past} of {row.runs}, median {bound}{look.seconds_text(row.median_s)}"
    if not row.lower_bounds:
        return text
    what = "not answered by the horizon" if row.overrun == "caller" else "still at work at the horizon"
    return f"{text}\n{row.lower_bounds} {what}"


def _point_style(overrun: str, colour: str) -> dict[str, Any]:
    """Return the style of an overrun's points: full circles for the caller's, hollow squares for the work's."""
    if overrun == "caller":
        return {"marker": "o", "markersize": 5, "markerfacecolor": colour, "markeredgecolor": look.PAPER, "alpha": 0.85}
    return {
        "marker": "s",
        "markersize": 5,
        "markerfacecolor": look.PAPER,
        "markeredgecolor": colour,
        "markeredgewidth": 1.2,
    }


def _draw_scale(ax: Axes, points: pd.DataFrame) -> None:
    linear_s = _linear_below(points)
    ax.set_xscale("symlog", linthresh=linear_s)
    greatest_s = max(float(points["overrun_s"].max()), 10 * linear_s)
    powers = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    ticks = [0.0, *(value for value in powers if linear_s <= value <= greatest_s * 1.3)]
    look.fixed_ticks(ax, ticks, look.seconds_text)
    look.faint_grid(ax, "x")
    ax.set_xlim(-0.08 * linear_s, greatest_s * 1.5)
    if points["lower_bound"].any():
        at_s = float(points.loc[points["lower_bound"], "overrun_s"].max())
        ax.axvline(at_s, color=look.INK, linewidth=0.9, linestyle=":", zorder=1.5, gid="horizon")
        look.note(ax, "horizon", (at_s, 1.0), (0.0, 3.0), x_in="data", ha="center", va="bottom")
    ax.axvline(0.0, color=look.INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=1.5, gid="deadline")
    look.note(ax, "deadline", (0.0, 1.0), (0.0, 3.0), x_in="data", ha="left", va="bottom")


def _linear_below(points: pd.DataFrame) -> float:
    """Return the power of ten at or below the smallest positive overrun, in seconds; 1 ms at least."""
    above = points.loc[points["overrun_s"] > 0, "overrun_s"]
    return _LEAST_S if above.empty else max(_LEAST_S, 10.0 ** math.floor(math.log10(float(above.min()))))


def _legend(bounds: bool) -> list[Line2D]:
    handles = [
        look.legend_key("a run: its caller's wait", **_point_style("caller", look.OTHER_COLOUR)),
        look.legend_key("a run: its work", **_point_style("work", look.OTHER_COLOUR)),
        look.median_key("line: median of those past it"),
        look.line_key("whisker: range", color=look.INK, linewidth=1.0),
    ]
    if bounds:
        shape: dict[str, Any] = {"marker": ">", "markersize": 7, "color": look.OTHER_COLOUR}
        handles.append(look.legend_key("not over by the horizon: a lower bound", **shape))
    return handles
