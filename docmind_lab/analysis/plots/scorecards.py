"""Figures of a scorecard: judged beside measured scores, and which option wins under which weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from docmind_lab.analysis.findings.scorecard import Scorecard
from docmind_lab.analysis.plots import look
from docmind_lab.core.errors import ConfigurationError

_KINDS: Final = ("Perf", "total")


def scorecard_totals(card: Scorecard, *, ax: Axes | None = None) -> Axes:
    """Plot the judged and measured scores of every arm: a row for Perf, and one for the total if it has one.

    Hollow is judged, full is measured; the bar is the 95 % bootstrap interval over seeds. Small ticks are the scores of
    the components that a measured Perf is the mean of.
    """
    totals = card.totals
    if ax is None:
        ax = look.new_axes(10.0, 2.0 + 0.78 * len(totals))
    look.row_bands(ax, len(totals))
    heights = []
    for place, row in enumerate(totals.to_dict("records")):
        scores = card.components.loc[card.components["option"] == row["option"], "score"].dropna()
        _draw_kind(ax, "Perf", place, row, row[card.table.measurable], row["perf_measured"], "perf")
        ticks: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9, "color": look.RULE, "zorder": 2}
        ax.plot(scores, [_height(place, "Perf")] * len(scores), gid=f"components:{place}", **ticks)
        _draw_kind(ax, "total", place, row, row["total_judged"], row["total_measured"], "total")
        if np.isnan(row["total_judged"]):
            look.note(ax, str(row["note"]), (0.0, _height(place, "total")), (4.0, 0.0), y_in="data")
        look.note(ax, str(row["option"]), (0.0, place), (-46.0, 0.0), y_in="data", ha="right", weight="bold")
        heights += [_height(place, kind) for kind in _KINDS]
    ax.set_yticks(heights, list(_KINDS) * len(totals))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(totals) - 0.5, -0.5)
    ax.set_xlim(-0.15, 10.15)
    ax.set_xticks(range(11))
    look.faint_grid(ax, "x")
    ax.set_xlabel("score (0 to 10)")
    look.legend_below(ax, _legend(), columns=4)
    look.style(ax, f"{card.table.name}: what was judged, and what was measured", context_of_card(card))
    return ax


def _draw_kind(ax: Axes, kind: str, place: int, row: dict[Any, Any], judged: float, measured: float, name: str) -> None:
    height, colour = _height(place, kind), look.colour_of(str(row["alternative"]))
    bounds = [row[f"{name}_low"], row[f"{name}_high"]]
    ax.plot(bounds, [height, height], color=look.INK, linewidth=1.6, zorder=2.5, gid=f"interval:{kind}:{place}")
    style: dict[str, Any] = {"linestyle": "none", "marker": "s" if kind == "Perf" else "o"}
    full: dict[str, Any] = {**style, "markersize": 8, "color": colour, "markeredgecolor": look.PAPER, "zorder": 3}
    ax.plot([measured], [height], gid=f"measured:{kind}:{place}", **full)
    hollow: dict[str, Any] = {**style, "markersize": 9, "markerfacecolor": "none", "markeredgecolor": colour}
    ax.plot([judged], [height], gid=f"judged:{kind}:{place}", zorder=3.5, markeredgewidth=1.5, **hollow)


def _height(place: int, kind: str) -> float:
    return place - 0.22 + 0.44 * _KINDS.index(kind)


def _legend() -> list[Artist]:
    none: dict[str, Any] = {"linestyle": "none", "color": look.OTHER_COLOUR, "markersize": 8}
    return [
        Line2D([], [], label="judged by the record", marker="o", markerfacecolor="none", markeredgewidth=1.5, **none),
        Line2D([], [], label="measured", marker="o", markeredgecolor=look.PAPER, **none),
        Line2D([], [], label="bar: 95 % bootstrap interval over seeds", color=look.INK, linewidth=1.6),
        Line2D([], [], label="tick: score of a component", marker="|", **(none | {"color": look.RULE})),
    ]


def context_of_card(card: Scorecard) -> str:
    """Describe the scorecard's runs in a line."""
    return f"{card.table.name} · {card.context} · {card.seeds} seeds"


# The corners of a triangle with sides of 1 and the first criterion on top.
_CORNERS: Final = np.array([[0.5, np.sqrt(0.75)], [0.0, 0.0], [1.0, 0.0]])
_TICKS_PERCENT: Final = (20, 40, 60, 80)
# The colours of options as a ground for ink, and lines in white on it: how much white is mixed in.
_WHITE: Final = 0.42
# Where the labels of the weights of each criterion stand: shift in points, and alignment.
_TICK_PLACES: Final = (((6.0, 2.0), "left", "bottom"), ((-6.0, 2.0), "right", "bottom"), ((0.0, -5.0), "center", "top"))


def scorecard_weights(card: Scorecard, *, perf: str = "measured", ax: Axes | None = None) -> Axes:
    """Plot all weights of three criteria as a triangle, coloured by the option that wins under them.

    At a corner one criterion has all of the weight, on the side opposite none. perf: "measured" or "judged". The star
    is at the weights of the record; a diamond, if there is one, at the nearest weights beyond which another option
    leads. The legend says how much of the triangle is whose.

    Raises: ConfigurationError for another Perf, or a table that has not three criteria.
    """
    frame = card.weight_map[card.weight_map["perf"] == perf]
    criteria = list(card.table.criteria)
    if frame.empty:
        raise ConfigurationError(f"perf must be judged or measured, not {perf!r}")
    if len(criteria) != 3:
        raise ConfigurationError(
            f"{card.table.name} has {len(criteria)} criteria and a triangle has room for three: look at one weight at "
            "a time, docmind_lab.analysis.findings.one_at_a_time"
        )
    if ax is None:
        ax = look.new_axes(8.6, 7.2)
    handles: list[Artist] = []
    labels = list(dict.fromkeys([*card.totals["option"], ""]))
    for label in [label for label in labels if (frame["winner"] == label).any()]:
        won = frame[frame["winner"] == label]
        colour = _tint(look.colour_of(str(won["alternative"].iloc[0])))
        _draw_cells(ax, _places(won[criteria].to_numpy(dtype=np.float64) / 100), colour, f"won:{label or 'shared'}")
        name = " ".join(label.split()) or "several share the lead"
        text = f"{name}: {_share_text(len(won) / len(frame))} of all weights"
        handles.append(Line2D([], [], label=text, color=colour, marker="s", markersize=9, linestyle="none"))
    _draw_triangle(ax, criteria)
    handles += _draw_points(ax, card, perf, criteria)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(x=0.12, y=0.08)
    ax.set_xticks([])
    ax.set_yticks([])
    look.legend_below(ax, handles, columns=2)
    look.style(ax, f"Which option wins under which weights, {card.table.measurable} {perf}", context_of_card(card))
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _places(weights: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return points of the plane for weights of three criteria: the weighted mean of the corners."""
    return np.asarray(weights @ _CORNERS)


def _tint(colour: str) -> tuple[float, float, float]:
    red, green, blue = ((1 - _WHITE) * part + _WHITE for part in to_rgb(colour))
    return red, green, blue


def _draw_cells(ax: Axes, places: np.ndarray[Any, Any], colour: tuple[float, float, float], gid: str) -> None:
    """Draw a hexagon for each point of the grid: the area nearest to it, within the triangle."""
    angles = np.deg2rad(np.arange(30, 390, 60))
    hexagon = 0.01 / np.sqrt(3) * np.column_stack([np.cos(angles), np.sin(angles)])
    cells = PolyCollection(list(places[:, None, :] + hexagon), facecolor=colour, edgecolor=colour, linewidth=0.2)
    cells.set_gid(gid)
    cells.set_zorder(1)
    ax.add_collection(cells)
    cells.set_clip_path(Polygon(_CORNERS, transform=ax.transData))


def _draw_triangle(ax: Axes, criteria: Sequence[str]) -> None:
    outline = np.vstack([_CORNERS, _CORNERS[:1]])
    ax.plot(*outline.T, color=look.INK, linewidth=1.2, zorder=2, gid="outline")
    for place in range(3):
        # Lines of one weight are parallel to the side opposite the corner; each is labelled where the next one is 0.
        following, last = (place + 1) % 3, (place + 2) % 3
        for percent in _TICKS_PERCENT:
            ends = np.zeros((2, 3))
            ends[:, place] = percent / 100
            ends[0, last] = ends[1, following] = 1 - percent / 100
            (x0, x1), (y0, y1) = _places(ends).T
            ax.plot([x0, x1], [y0, y1], color=look.PAPER, linewidth=0.7, alpha=0.8, zorder=1.5)
            (dx, dy), ha, va = _TICK_PLACES[place]
            look.note(ax, f"{criteria[place]} {percent} %", (x0, y0), (dx, dy), x_in="data", y_in="data", ha=ha, va=va)
    for (x, y), criterion, (dx, dy) in zip(_CORNERS, criteria, ((0, 12), (-4, -16), (4, -16)), strict=True):
        text = f"{criterion} 100 %"
        look.note(ax, text, (x, y), (dx, dy), x_in="data", y_in="data", ha="center", weight="bold")


def _draw_points(ax: Axes, card: Scorecard, perf: str, criteria: Sequence[str]) -> list[Artist]:
    weights = np.array([float(weight) for weight in card.table.weights])
    (x, y), star = (
        _places(weights),
        {"marker": "*", "markersize": 17, "markeredgecolor": look.PAPER, "linestyle": "none"},
    )
    ax.plot([x], [y], color=look.INK, zorder=4, gid="record", **star)  # type: ignore[arg-type]
    sentence = ", ".join(f"{name} {100 * w:g}" for name, w in zip(criteria, weights, strict=True))
    handles: list[Artist] = [Line2D([], [], label=f"{card.table.name}: {sentence} %", color=look.INK, **star)]  # type: ignore[arg-type]
    rivals = card.nearest[(card.nearest["perf"] == perf) & np.isfinite(card.nearest["moved_percent"])]
    if rivals.empty:
        handles.append(Line2D([], [], label="no weights put another option ahead", linestyle="none"))
        return handles
    first = next(look.rows_of(rivals.head(1)))
    there = _places(rivals[list(criteria)].to_numpy(dtype=np.float64)[0] / 100)
    diamond: dict[str, Any] = {
        "marker": "D",
        "markersize": 8,
        "markerfacecolor": look.PAPER,
        "markeredgecolor": look.INK,
    }
    ax.plot([x, there[0]], [y, there[1]], color=look.INK, linewidth=1.2, linestyle=(0, (4, 2)), zorder=3)
    ax.plot([there[0]], [there[1]], linestyle="none", zorder=4, gid="nearest", **diamond)
    text = f"nearest change: {first.moved_percent:.1f} points moved, then {' '.join(first.rival.split())} leads"
    handles.append(Line2D([], [], label=text, linestyle="none", **diamond))
    return handles


def _share_text(share: float) -> str:
    return f"{share:.0%}" if share in (0.0, 1.0) or 0.005 <= share < 0.995 else f"{share:.2%}"
