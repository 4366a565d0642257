"""Figure: by how much each run was back later on the wall clock than in virtual time."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.agreement import MEAN_ERROR, Agreement
from docmind_lab.views.plots import look

_TARGET_PERCENT: Final = 100 * MEAN_ERROR
_TICKS_PERCENT: Final = (0.2, 0.4, 0.6, 0.8, 1.0, 3.0, 10.0, 30.0, 100.0)
_MISS: Final[dict[str, Any]] = {"marker": "D", "markersize": 6.5, "markerfacecolor": look.PAPER, "markeredgewidth": 1.6}
_POINT: Final[dict[str, Any]] = {"marker": "o", "markersize": 5, "markeredgecolor": look.PAPER, "alpha": 0.85}


def agreement_frame(result: Agreement) -> pd.DataFrame:
    """Return the points of the plot: one row for each pair of runs that returned on at least one clock.

    Columns: group (0, 1, … of alternative and options), label, alternative, seed, later_s (wall − virtual),
    later_percent (of the wall's completion), miss (another outcome), jitter (−0.5 to 0.5, fixed by the rank of the
    seed, so that one question lies at one height).

    Args:
        result: Of `docmind_lab.findings.agreement.agreement`.

    Raises:
        ConfigurationError: There is no such pair.
    """
    frame = result.pairs.dropna(subset="later_s").reset_index(drop=True)
    if frame.empty:
        raise ConfigurationError("pairs has no run that returned: there is nothing to draw; choose a longer budget")
    frame["group"] = pd.factorize(frame["label"])[0]
    frame["later_percent"] = 100 * frame["later_s"] / frame["wall_returned_at_s"]
    frame["miss"] = ~frame["same_outcome"]
    frame["jitter"] = look.spread_of_seeds(frame["seed"])
    return frame[["group", "label", "alternative", "seed", "later_s", "later_percent", "miss", "jitter"]]


def agreement(result: Agreement, *, ax: look.Canvas = None) -> Axes:
    """Plot by how many percent each run was back later on the wall clock, in a row for each alternative.

    Points are pairs of runs, hollow where the outcome was another one; the upright line is their median. The dotted
    lines are what the mean error may be. The scale is linear up to there and logarithmic beyond.

    Other parameters are those of `agreement_frame`, and so are the errors.

    Args:
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    points = agreement_frame(result)
    groups = int(points["group"].nunique())
    ax = look.axes_for(ax, 10.0, 1.9 + 0.5 * groups)
    look.row_bands(ax, groups)
    for row in look.rows_of(points.drop_duplicates("group")):
        _draw_row(ax, row, points[points["group"] == row.group])
    _draw_scale(ax, points)
    look.label_rows(ax, groups, range(groups), points.drop_duplicates("group")["label"])
    ax.set_xlabel(
        "wall clock later than virtual time (% of the time until the caller was back; "
        f"linear up to {_TARGET_PERCENT:g} %, logarithmic beyond)"
    )
    look.legend_below(ax, _legend(bool(points["miss"].any())), columns=4)
    look.style(ax, "How much later the same runs were back on the wall clock", _context(result))
    return ax


def _draw_row(ax: Axes, row: Any, points: pd.DataFrame) -> None:
    colour = look.colour_of(row.alternative)
    for miss, subset in points.groupby("miss"):
        style: dict[str, Any] = {**_MISS, "markeredgecolor": colour} if miss else {**_POINT, "markerfacecolor": colour}
        gid = f"{'misses' if miss else 'points'}:{row.group}"
        heights = row.group + 0.6 * subset["jitter"]
        ax.plot(subset["later_percent"], heights, linestyle="none", gid=gid, zorder=3 + bool(miss), **style)
    median = float(points["later_percent"].median())
    span = [row.group - 0.36, row.group + 0.36]
    ax.plot([median, median], span, color=look.INK, linewidth=2.2, zorder=2.8, gid=f"median:{row.group}")
    error = float(points["later_percent"].abs().mean())
    text = f"mean error {error:.2g} %\nmedian {look.seconds_text(float(points['later_s'].median()))} later"
    look.note(ax, text, (1.0, row.group), (12.0, 0.0), y_in="data")


def _draw_scale(ax: Axes, points: pd.DataFrame) -> None:
    ax.set_xscale("symlog", linthresh=_TARGET_PERCENT, linscale=2.0)
    # All of the range that a mean may have is to be seen, also when every point lies close to 0.
    low = min(-_TARGET_PERCENT, points["later_percent"].min())
    high = max(_TARGET_PERCENT, points["later_percent"].max())
    ax.set_xlim(1.15 * low, 1.15 * high)
    ticks = [sign * value for value in _TICKS_PERCENT for sign in (-1, 1) if low <= sign * value <= high]
    look.fixed_ticks(ax, sorted([0.0, *ticks]), "{:g} %".format)
    look.faint_grid(ax, "x")
    ax.axvline(0.0, color=look.INK, linewidth=1.0, zorder=1.5, gid="same")
    look.note(ax, "the same", (0.0, 1.0), (0.0, 3.0), x_in="data", ha="center", va="bottom")
    for side in (-_TARGET_PERCENT, _TARGET_PERCENT):
        ax.axvline(side, color=look.INK, linewidth=1.0, linestyle=":", zorder=1.5, gid=f"target:{side:g}")
    text = f"mean error: at most {_TARGET_PERCENT:g} %"
    look.note(ax, text, (_TARGET_PERCENT, 1.0), (0.0, 3.0), x_in="data", ha="center", va="bottom")


def _legend(misses: bool) -> list[Line2D]:
    handles = [
        look.legend_key("a run on both clocks", markerfacecolor=look.OTHER_COLOUR, **_POINT),
        look.median_key("line: median"),
    ]
    return (
        [*handles, look.legend_key("a run with another outcome", markeredgecolor=look.OTHER_COLOUR, **_MISS)]
        if misses
        else handles
    )


def _context(result: Agreement) -> str:
    pairs = result.pairs
    budgets = " and ".join(f"{value:g}" for value in sorted(pairs["decision_timeout_s"].unique()))
    return (
        f"{budgets} s decision timeout · {pairs['seed'].nunique()} questions · {result.same_outcome:.1%} of "
        f"{len(pairs)} pairs with the same outcome"
    )
