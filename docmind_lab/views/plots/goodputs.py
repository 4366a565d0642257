"""Figures: a system's answers in time under load, and its provider's capacity spent on abandoned work."""

from __future__ import annotations

from typing import Any, Final, Protocol

import pandas as pd
from matplotlib.axes import Axes

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.plots import look

_POINT: Final[dict[str, Any]] = {"marker": "o", "markersize": 4.5, "markeredgecolor": look.PAPER, "alpha": 0.75}
_MEASURES: Final = {
    "goodput_per_s": ("goodput_low_per_s", "goodput_high_per_s"),
    "abandoned_share": ("abandoned_low_share", "abandoned_high_share"),
}


class LoadMeasures(Protocol):
    """The measurements of a load study, such as `experiments.load.LoadStudy`."""

    @property
    def title(self) -> str:
        """Return the title of the study, in a line."""
        ...

    def replicates(self) -> pd.DataFrame:
        """Return one row for each arm, load and replicate."""
        ...

    def summary(self) -> pd.DataFrame:
        """Return one row for each arm and load, with intervals over replicates."""
        ...


def goodput_frame(study: LoadMeasures, measure: str = "goodput_per_s") -> pd.DataFrame:
    """Return the points of the plots: one row for each arm, load and replicate.

    Columns: group (0, 1, … of arms), arm, alternative, offered_per_s, replicate, value (the measure in this
    replicate), mean, low, high (over replicates; NaN for few of them), shown_at_per_s (where points and bars stand:
    offered_per_s, moved a little for each group so that equal ones can be told apart).

    Args:
        study: A load study, of `run_load`.
        measure: "goodput_per_s" or "abandoned_share".

    Raises:
        ConfigurationError: Another measure, several kinds of arrivals, or a measure without any value.
    """
    if measure not in _MEASURES:
        raise ConfigurationError(f"measure must be one of {', '.join(_MEASURES)}, not {measure!r}")
    points = study.replicates()
    kinds = sorted(set(points["arrivals"]))
    if len(kinds) > 1:
        raise ConfigurationError(
            f"arrivals has several kinds ({', '.join(kinds)}), and one picture has room for one: keep one of them"
        )
    if points[measure].isna().all():
        raise ConfigurationError(f"{measure} is not known: the provider has no limit of slots; give the study slots")
    low, high = _MEASURES[measure]
    keys = ["arm", "offered_per_s"]
    means = study.summary()[[*keys, measure, low, high]].rename(columns={measure: "mean", low: "low", high: "high"})
    frame = points[[*keys, "alternative", "replicate", measure]].rename(columns={measure: "value"})
    frame = frame.merge(means, on=keys, validate="many_to_one").sort_values([*keys, "replicate"], ignore_index=True)
    frame["group"] = pd.factorize(frame["arm"])[0]
    places = frame["group"] - (frame["group"].max() / 2)
    frame["shown_at_per_s"] = frame["offered_per_s"] + places * 0.012 * frame["offered_per_s"].max()
    columns = ["group", "arm", "alternative", "offered_per_s", "replicate", "value", "mean", "low", "high"]
    return frame[[*columns, "shown_at_per_s"]]


def goodput(study: LoadMeasures, *, ax: look.Canvas = None) -> Axes:
    """Plot goodput against offered load: a line for each arm through its means, and every replicate as a point.

    The dotted line is where every query that arrives is answered in time. Bars are 95 % intervals of the mean over
    replicates (bounded mean).

    Other parameters are those of `goodput_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame = goodput_frame(study)
    ax = look.axes_for(ax, 9.0, 5.2)
    most = float(frame["offered_per_s"].max())
    _draw(ax, frame)
    ax.plot([0.0, most], [0.0, most], color=look.INK, linewidth=1.0, linestyle=":", zorder=1.5, gid="ideal")
    look.note(ax, "all in time", (most, most), (4.0, 4.0), x_in="data", y_in="data", ha="right", va="bottom")
    ax.set_xlim(0.0, 1.06 * most)
    ax.set_ylim(0.0, 1.1 * max(most, float(frame["value"].max())))
    ax.set_ylabel("goodput: answered in time (queries/s)")
    _finish(ax, frame, "What is answered in time, at each load", study.title)
    return ax


def abandoned_share(study: LoadMeasures, *, ax: look.Canvas = None) -> Axes:
    """Plot the share of the provider's capacity spent on queries that were late or whose caller had left.

    Lines, points and bars as in `goodput`.

    Other parameters are those of `goodput_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame = goodput_frame(study, "abandoned_share")
    ax = look.axes_for(ax, 9.0, 4.6)
    _draw(ax, frame)
    ax.set_xlim(0.0, 1.06 * float(frame["offered_per_s"].max()))
    # With nothing abandoned at all, a tenth is still to be seen; and a line at 0 lies clear of the axis.
    top = max(0.1, 1.1 * float(frame["value"].max()))
    ax.set_ylim(-0.03 * top, top)
    look.percent_ticks(ax)
    ax.set_ylabel("slot seconds on abandoned work (% of capacity)")
    _finish(ax, frame, "What the provider spends on work that nobody waits for", study.title)
    return ax


def _draw(ax: Axes, frame: pd.DataFrame) -> None:
    groups = int(frame["group"].nunique())
    for first in look.rows_of(frame.drop_duplicates("group")):
        mine, place = frame[frame["group"] == first.group], int(first.group)
        means = mine.drop_duplicates("offered_per_s")
        colour = look.colour_of(first.alternative)
        style = look.line_style(place, groups)
        ax.plot(means["offered_per_s"], means["mean"], color=colour, gid=f"means:{place}", zorder=2, **style)
        bars = (means["shown_at_per_s"], means["low"], means["high"])
        ax.vlines(*bars, color=colour, linewidth=1.2, zorder=2.2, gid=f"intervals:{place}")
        points: dict[str, Any] = {"linestyle": "none", "markerfacecolor": colour, **_POINT}
        ax.plot(mine["shown_at_per_s"], mine["value"], gid=f"replicates:{place}", zorder=3, **points)


def _finish(ax: Axes, frame: pd.DataFrame, title: str, context: str) -> None:
    ax.set_xlabel("offered load: arrivals (queries/s)")
    look.faint_grid(ax, "y")
    groups = int(frame["group"].nunique())
    handles = [
        look.line_key(row.arm, color=look.colour_of(row.alternative), **look.line_style(row.group, groups))
        for row in look.rows_of(frame.drop_duplicates("group"))
    ]
    handles.append(look.legend_key("one replicate", markerfacecolor=look.OTHER_COLOUR, **_POINT))
    if frame["low"].notna().any():
        handles.append(look.legend_key("95 % interval of the mean", color=look.OTHER_COLOUR, marker="|", markersize=11))
    look.legend_below(ax, handles, columns=3)
    look.style(ax, title, context)
