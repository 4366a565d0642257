"""Figures of a scorecard: judged beside measured scores, and which option wins under which weights."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.scorecard import Scorecard
from docmind_lab.views.plots import look

_KINDS: Final = ("Perf", "total")
# The corners of a triangle with sides of 1 and the first criterion on top.
_CORNERS: Final = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
_TICKS_PERCENT: Final = (20, 40, 60, 80)
# The colours of options as a ground for ink, and lines in white on it: how much white is mixed in.
_WHITE: Final = 0.42
# Where the labels of the weights of each criterion, and of its corner, stand: shift in points, and alignment.
_TICK_PLACES: Final = (((6.0, 2.0), "left", "bottom"), ((-6.0, 2.0), "right", "bottom"), ((0.0, -5.0), "center", "top"))
_CORNER_PLACES: Final = ((0, 12), (-4, -16), (4, -16))


def scorecard_totals(card: Scorecard, *, ax: look.Canvas = None) -> Axes:
    """Plot the judged and measured scores of every arm: a row for Perf, and one for the total if it has one.

    Hollow is judged, full is measured; the bar is the 95 % bootstrap interval over seeds.
    """
    totals = card.totals
    ax = look.axes_for(ax, 10.0, 2.0 + 0.78 * len(totals))
    look.row_bands(ax, len(totals))
    heights = np.add.outer(np.arange(len(totals)), (-0.22, 0.22))
    for place, row in enumerate(totals.to_dict("records")):
        colour = look.colour_of(str(row["alternative"]))
        for kind, height, judged in zip(
            _KINDS, heights[place], (row[card.table.measurable], row["total_judged"]), strict=True
        ):
            name, gid = kind.lower(), f"{kind}:{place}"
            bounds = [row[f"{name}_low"], row[f"{name}_high"]]
            ax.plot(bounds, [height, height], color=look.INK, linewidth=1.6, zorder=2.5, gid=f"interval:{gid}")
            ax.plot(row[f"{name}_measured"], height, gid=f"measured:{gid}", **_full(colour))
            ax.plot(judged, height, gid=f"judged:{gid}", **_hollow(colour))
        look.note(ax, str(row["note"]), (0.0, heights[place][1]), (4.0, 0.0), y_in="data")
        look.note(ax, str(row["option"]), (0.0, place), (-46.0, 0.0), y_in="data", ha="right", weight="bold")
    look.label_rows(ax, len(totals), heights.ravel(), list(_KINDS) * len(totals))
    ax.set_xlim(-0.15, 10.15)
    ax.set_xticks(range(11))
    look.faint_grid(ax, "x")
    ax.set_xlabel("score (0 to 10)")
    keys = [
        look.legend_key("judged by the record", **_hollow(look.OTHER_COLOUR)),
        look.legend_key("measured", **_full(look.OTHER_COLOUR)),
        look.line_key("bar: 95 % bootstrap interval over seeds", color=look.INK, linewidth=1.6),
    ]
    look.legend_below(ax, keys, columns=3)
    look.style(ax, f"{card.table.name}: what was judged, and what was measured", _context(card))
    return ax


def _full(colour: str) -> dict[str, Any]:
    return {"linestyle": "none", "marker": "o", "markersize": 8, "color": colour, "markeredgecolor": look.PAPER}


def _hollow(colour: str) -> dict[str, Any]:
    face = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.5}
    return {"linestyle": "none", "marker": "o", "markersize": 9, **face}


def _context(card: Scorecard) -> str:
    return f"{card.table.name} · {card.context} · {card.seeds} seeds"


def scorecard_weights(card: Scorecard, *, perf: str = "measured", ax: look.Canvas = None) -> Axes:
    """Plot all weights of three criteria as a triangle, coloured by the option that wins under them.

    At a corner one criterion has all of the weight, on the side opposite none. perf: "measured" or "judged". The star
    is at the weights of the record. The legend says how much of the triangle is whose.

    Raises: ConfigurationError for another Perf, or a table that has not three criteria.
    """
    frame = card.weight_map[card.weight_map["perf"] == perf]
    criteria = list(card.table.criteria)
    if frame.empty:
        raise ConfigurationError(f"perf must be judged or measured, not {perf!r}")
    if len(criteria) != 3:
        raise ConfigurationError(
            f"{card.table.name} has {len(criteria)} criteria and a triangle has room for three: its winners() has all "
            "weights"
        )
    ax = look.axes_for(ax, 8.6, 7.2)
    handles: list[Artist] = []
    levels = dict(zip(card.totals["option"], card.totals["alternative"], strict=True))
    for label in [each for each in (*card.totals["option"], "") if (frame["winner"] == each).any()]:
        won = frame[frame["winner"] == label]
        colour = _tint(look.colour_of(levels.get(label, "")))
        _draw_cells(ax, won[criteria].to_numpy(dtype=np.float64) / 100 @ _CORNERS, colour, f"won:{label or 'shared'}")
        name = " ".join(label.split()) or "several share the lead"
        text = f"{name}: {_share_text(len(won) / len(frame))} of all weights"
        handles.append(look.legend_key(text, color=colour, marker="s", markersize=9))
    _draw_triangle(ax, criteria)
    handles.append(_draw_record(ax, card))
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(x=0.12, y=0.08)
    ax.set_xticks([])
    ax.set_yticks([])
    look.legend_below(ax, handles, columns=2)
    look.style(ax, f"Which option wins under which weights, {card.table.measurable} {perf}", _context(card))
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _tint(colour: str) -> tuple[float, float, float]:
    red, green, blue = ((1 - _WHITE) * part + _WHITE for part in to_rgb(colour))
    return red, green, blue


def _draw_cells(ax: Axes, places: np.ndarray[Any, Any], colour: tuple[float, float, float], gid: str) -> None:
    """Draw a hexagon for each point of the grid: the area nearest to it, within the triangle."""
    angles = np.deg2rad(np.arange(30, 390, 60))
    hexagon = 0.01 / np.sqrt(3) * np.column_stack([np.cos(angles), np.sin(angles)])
    cells = PolyCollection(list(places[:, None, :] + hexagon), facecolor=colour, edgecolor=colour, linewidth=0.2)
    cells.set(gid=gid, zorder=1)
    ax.add_collection(cells)
    cells.set_clip_path(Polygon(_CORNERS, transform=ax.transData))


def _draw_triangle(ax: Axes, criteria: list[str]) -> None:
    in_data: dict[str, Any] = {"x_in": "data", "y_in": "data"}
    ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, color=look.INK, linewidth=1.2, zorder=2, gid="outline")
    for place, (criterion, (shift, ha, va)) in enumerate(zip(criteria, _TICK_PLACES, strict=True)):
        # Lines of one weight are parallel to the side opposite the corner; each is labelled where the next one is 0.
        following, last = (place + 1) % 3, (place + 2) % 3
        for percent in _TICKS_PERCENT:
            ends = np.zeros((2, 3))
            ends[:, place] = percent / 100
            ends[0, last] = ends[1, following] = 1 - percent / 100
            (x0, x1), (y0, y1) = (ends @ _CORNERS).T
            ax.plot([x0, x1], [y0, y1], color=look.PAPER, linewidth=0.7, alpha=0.8, zorder=1.5)
            look.note(ax, f"{criterion} {percent} %", (x0, y0), shift, ha=ha, va=va, **in_data)
        x, y = _CORNERS[place]
        look.note(ax, f"{criterion} 100 %", (x, y), _CORNER_PLACES[place], ha="center", weight="bold", **in_data)


def _draw_record(ax: Axes, card: Scorecard) -> Artist:
    """Draw a star at the weights of the record."""
    x, y = card.table.weights @ _CORNERS
    star: dict[str, Any] = {"marker": "*", "markersize": 17, "markeredgecolor": look.PAPER, "color": look.INK}
    ax.plot([x], [y], zorder=4, gid="record", linestyle="none", **star)
    at = ", ".join(f"{name} {percent:g}" for name, percent in card.table.weights_percent.items())
    return look.legend_key(f"{card.table.name}: {at} %", **star)


def _share_text(share: float) -> str:
    return f"{share:.0%}" if share in (0.0, 1.0) or 0.005 <= share < 0.995 else f"{share:.2%}"
