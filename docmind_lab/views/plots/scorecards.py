"""Figure of a scorecard: which option wins under which weights."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from docmind_lab.core.text import one_line
from docmind_lab.findings.scorecard import Scorecard, share_text
from docmind_lab.views.plots import look

# The corners of a triangle with sides of 1 and the first criterion on top, and where their labels stand.
_CORNERS: Final = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
_CORNER_PLACES: Final = ((0, 12), (-4, -16), (4, -16))
# Where the weights of each criterion are labelled: shift in points, and alignment.
_TICK_PLACES: Final = (((6.0, 2.0), "left", "bottom"), ((-6.0, 2.0), "right", "bottom"), ((0.0, -5.0), "center", "top"))
_TICKS_PERCENT: Final = (20, 40, 60, 80)
# Points of the grid stand a hundredth of a side apart; hexagons of this area (points²) leave no gap between them.
_CELL_AREA: Final = 34.0
# The colours of options as a ground for ink: how much white is mixed in.
_WHITE: Final = 0.42
_STAR: Final[dict[str, Any]] = {"marker": "*", "markersize": 17, "markeredgecolor": look.PAPER, "color": look.INK}


def scorecard_weights(card: Scorecard, *, ax: look.Canvas = None) -> Axes:
    """Plot all weights of the three criteria as a triangle, coloured by the option that wins with measured Perf.

    At a corner one criterion has all of the weight, on the side opposite none. The star is at the weights of the
    record. The legend says how much of the triangle is whose.

    Args:
        card: Of `findings.scorecard`.
        ax: Axes to draw on; None makes a figure, `OFFSCREEN` one without a display.
    """
    frame, criteria = card.weight_map[card.weight_map["perf"] == "measured"], list(card.table.criteria)
    ax = look.axes_for(ax, 8.6, 7.2)
    handles: list[Artist] = []
    levels = dict(zip(card.totals["option"], card.totals["alternative"], strict=True))
    for label in [each for each in (*card.totals["option"], "") if (frame["winner"] == each).any()]:
        cells = frame[frame["winner"] == label]
        colour = _tint(look.colour_of(levels.get(label, "")))
        x, y = (cells[criteria].to_numpy(dtype=np.float64) / 100 @ _CORNERS).T
        ax.scatter(x, y, s=_CELL_AREA, marker="h", color=colour, linewidths=0, gid=f"won:{label or 'shared'}")
        text = f"{one_line(label) or 'several share the lead'}: {share_text(len(cells) / len(frame))} of all weights"
        handles.append(look.legend_key(text, color=colour, marker="s", markersize=9))
    _draw_scale(ax, criteria)
    at_text = ", ".join(f"{name} {percent:g}" for name, percent in card.table.weights_percent.items())
    ax.plot(*(card.table.weights @ _CORNERS)[:, None], linestyle="none", zorder=4, gid="record", **_STAR)
    handles.append(look.legend_key(f"{card.table.name}: {at_text} %", **_STAR))
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(x=0.12, y=0.08)
    ax.set_xticks([])
    ax.set_yticks([])
    look.legend_below(ax, handles, columns=2)
    context = f"{card.table.name} · {card.context} · {card.seeds} seeds"
    look.style(ax, f"Which option wins under which weights, {card.table.measurable} measured", context)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _draw_scale(ax: Axes, criteria: list[str]) -> None:
    """Draw lines of one weight of each criterion, with its percentage, and name the corners."""
    for place, (criterion, (shift, ha, va)) in enumerate(zip(criteria, _TICK_PLACES, strict=True)):
        following, last = (place + 1) % 3, (place + 2) % 3
        for percent in _TICKS_PERCENT:
            # Parallel to the side opposite the corner, and labelled where the next criterion has no weight.
            ends = np.zeros((2, 3))
            ends[:, place] = percent / 100
            ends[0, last] = ends[1, following] = 1 - percent / 100
            (x0, x1), (y0, y1) = (ends @ _CORNERS).T
            ax.plot([x0, x1], [y0, y1], color=look.PAPER, linewidth=0.7, alpha=0.8, zorder=1.5)
            look.note(ax, f"{criterion} {percent} %", (x0, y0), shift, ha=ha, va=va, x_in="data", y_in="data")
        corner = (float(_CORNERS[place][0]), float(_CORNERS[place][1]))
        at_corner: dict[str, Any] = {"ha": "center", "weight": "bold", "x_in": "data", "y_in": "data"}
        look.note(ax, f"{criterion} 100 %", corner, _CORNER_PLACES[place], **at_corner)


def _tint(colour: str) -> tuple[float, float, float]:
    red, green, blue = ((1 - _WHITE) * part + _WHITE for part in to_rgb(colour))
    return red, green, blue
