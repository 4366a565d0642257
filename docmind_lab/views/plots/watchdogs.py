"""Figure: how many healthy calls a limit kills, against the seconds after which it notices a hang."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from docmind_lab.findings.watchdog import KINDS, Watchdog
from docmind_lab.views.plots import look

# None is the colour of an alternative: limits are none of them.
_STYLES: Final[dict[str, tuple[str, Any]]] = {
    "first_token": ("#7B3294", "solid"),
    "idle": ("#8C510A", (0, (4, 1.5))),
    "total": (look.INK, "solid"),
}


def false_kills_frame(dog: Watchdog) -> pd.DataFrame:
    """Return the points of the lines: rows of `Watchdog.curve`, without those that kill nobody.

    Args:
        dog: Of `watchdog`.
    """
    return dog.curve[(dog.curve["killed"] > 0) & (dog.curve["at_s"] > 0)].reset_index(drop=True)


def false_kills(dog: Watchdog, *, ax: look.Canvas = None) -> Axes:
    """Plot the share of healthy calls killed against the seconds until a hang is noticed: a line for each limit.

    Bands are 95 % intervals. A triangle marks the limit that was chosen, the dotted line what all of them together may
    kill. Both scales are logarithmic.

    Args:
        dog: Of `watchdog`.
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame = false_kills_frame(dog)
    ax = look.axes_for(ax, 8.0, 5.0)
    least = 0.7 * min(float(frame["killed"].min()), dog.false_kills)
    handles = []
    for kind in (kind for kind in _STYLES if kind in set(frame["limit"])):
        points, (colour, dashes) = frame[frame["limit"] == kind], _STYLES[kind]
        low = points["low"].clip(lower=least)
        ax.fill_between(points["at_s"], low, points["high"], step="post", color=colour, alpha=0.15, linewidth=0)
        style = {"color": colour, "linestyle": dashes, "linewidth": 1.8}
        ax.step(points["at_s"], points["killed"], where="post", gid=f"killed:{kind}", **style)
        words, limit_s = KINDS[kind], getattr(dog.limits, f"{kind}_s")
        if limit_s is not None:
            words = f"{words}: {limit_s:g} s"
            ax.axvline(limit_s, zorder=1, **{**style, "linewidth": 0.9, "alpha": 0.6})
            mark: dict[str, Any] = {"marker": "v", "markersize": 9, "markeredgecolor": look.PAPER, "clip_on": False}
            ax.plot([limit_s], [least], color=colour, zorder=4, gid=f"limit:{kind}", **mark)
        handles.append(look.line_key(words, **style))
    ax.set(xscale="log", yscale="log", ylim=(least, 1.1))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda at_s, _: f"{at_s:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g} %"))
    look.faint_grid(ax, "y")
    ax.axhline(dog.false_kills, color=look.INK, linewidth=1.0, linestyle=":", zorder=1.5, gid="promise")
    text = f"at most {100 * dog.false_kills:g} % together"
    look.note(ax, text, (0.0, dog.false_kills), (6.0, 5.0), y_in="data", va="bottom")
    ax.set_xlabel("seconds until a hang is noticed (s, logarithmic)")
    ax.set_ylabel("healthy calls killed (%, logarithmic)")
    look.legend_below(ax, handles, columns=3)
    of_role = f" of {dog.role}" if dog.role else ""
    counts = f"{dog.counts['calls']:,} model calls{of_role} in {dog.counts['runs']:,} independent runs"
    look.style(ax, "What a limit kills, and how soon it notices a hang", f"{counts} · 95 % intervals, by run")
    return ax
