"""Figure: the limits of a graph inside each other, and how long each lasted when nothing was answered."""

from __future__ import annotations

import math
from typing import Any, Final

from matplotlib.axes import Axes

from docmind_lab.core.text import count_of
from docmind_lab.views.plots import look

_BAR, _EDGE = "#BBD3EA", "#0072B2"
_MARKS: Final = {
    "hang_s": ("o", "#D55E00", -0.13, "measured, no byte ever"),
    "trickle_s": ("^", "#1A1A1A", 0.13, "measured, bytes without end"),
}
_BEYOND = 1.12
"""Where what has no end is drawn, as a share of the longest that has one."""


def nested_limits(report: Any, *, ax: look.Canvas = None) -> Axes:
    """Plot the limits in force from the outside in, each as a bar of its tries, with what was measured.

    Args:
        report: What `dl.timeouts` returns.
        ax: Axes to draw on; None means a new figure.

    Returns:
        The axes.
    """
    frame = report.frame().assign(label=list(map(_label, look.rows_of(report.table()))))
    # No fault is one of connecting, or of the wait for a connection.
    frame = frame[~frame["level"].isin(["connect", "pool"])]
    axes = look.axes_for(ax, 5.2, 2.2 + 0.42 * len(frame))
    measured = frame[["designed_s", *_MARKS]]
    # Where nothing has an end, all of it is drawn at the edge.
    longest_s = max(1.0, measured[measured < math.inf].max().max())
    edge_s = longest_s * _BEYOND
    look.row_bands(axes, len(frame))
    for place, row in enumerate(look.rows_of(frame)):
        axes.barh(place, min(row.designed_s, edge_s), height=0.62, color=_BAR, edgecolor=_EDGE, linewidth=0.8)
        if math.isfinite(row.designed_s):
            ends = [row.designed_s * number / row.tries for number in range(1, row.tries)]
            axes.vlines(ends, place - 0.31, place + 0.31, color=_EDGE, linewidth=0.8)
    for name, (marker, colour, shift, _) in _MARKS.items():
        places = [place + shift for place in range(len(frame))]
        axes.plot(frame[name].clip(upper=edge_s), places, marker, color=colour, markersize=5, clip_on=False)
    axes.set_xlim(0, edge_s)
    if not (measured < math.inf).any(axis=None):
        axes.set_xticks([])
    axes.axvline((longest_s + edge_s) / 2, color=look.RULE, linewidth=0.8, linestyle=(0, (2, 2)))
    look.note(axes, "no end", (edge_s, 1.0), (0.0, 3.0), x_in="data", ha="right", va="bottom")
    look.label_rows(axes, len(frame), range(len(frame)), frame["label"])
    axes.set_xlabel("seconds until it is over, at worst")
    keys = [look.legend_key(words, marker=marker, color=colour) for marker, colour, _, words in _MARKS.values()]
    bar = look.legend_key("by design: tries and waits", marker="s", color=_BAR, markeredgecolor=_EDGE)
    look.legend_below(axes, [bar, *keys], columns=1)
    count = len(report.inversions)
    look.style(axes, "Which limit is over first?", count_of(count, "inversion") if count else "no inversion")
    return axes


def _label(words: Any) -> str:
    """Return the label of a row of the table of limits; a client stands further in than its node."""
    level = f", {words.bounds}" if words.bounds not in words.of.split() else ""
    seconds = "" if words.limit == "none" else f" {words.limit} s"
    return f"{words.of}{level}{seconds}{f' × {words.tries}' if words.tries else ''}"
