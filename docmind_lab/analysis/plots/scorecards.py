"""A scorecard drawn: what was judged beside what was measured. `weight_maps` draws what weights make of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from docmind_lab.analysis.plots.look import (
    BAND,
    INK,
    OTHER_COLOUR,
    PAPER,
    RULE,
    colour_of,
    dress,
    legend_below,
    new_axes,
    note,
)

_KINDS: Final = ("Perf", "total")


class WeighedTable(Protocol):
    """The decision table of a scorecard."""

    @property
    def name(self) -> str:
        """Of the record."""
        ...

    @property
    def criteria(self) -> Sequence[str]:
        """In the order of the weights."""
        ...

    @property
    def weights(self) -> Sequence[Decimal]:
        """Shares of 1."""
        ...

    @property
    def measurable(self) -> str:
        """The criterion that was measured."""
        ...


class ScorecardTables(Protocol):
    """Whatever holds the frames that `docmind_lab.analysis.findings.Scorecard` documents."""

    @property
    def table(self) -> WeighedTable:
        """The decision table."""
        ...

    @property
    def context(self) -> str:
        """What was measured, in a line."""
        ...

    @property
    def seeds(self) -> int:
        """How many stand behind an interval."""
        ...

    @property
    def totals(self) -> pd.DataFrame:
        """One row per arm."""
        ...

    @property
    def components(self) -> pd.DataFrame:
        """One row per arm and component."""
        ...

    @property
    def weight_map(self) -> pd.DataFrame:
        """One row per Perf and weights."""
        ...

    @property
    def nearest(self) -> pd.DataFrame:
        """One row per Perf and rival."""
        ...


def scorecard_totals(card: ScorecardTables, *, ax: Axes | None = None) -> Axes:
    """Axes with the judged and the measured scores of every arm: a row for Perf, and one for the total if it has one.

    Hollow is judged, full is measured; the bar is the 95 % bootstrap interval over seeds. Small ticks are the scores of
    the components that a measured Perf is the mean of.
    """
    totals = card.totals
    if ax is None:
        ax = new_axes(10.0, 2.0 + 0.78 * len(totals))
    for place in range(0, len(totals), 2):
        ax.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
    heights = []
    for place, row in enumerate(totals.to_dict("records")):
        scores = card.components.loc[card.components["option"] == row["option"], "score"].dropna()
        _draw_kind(ax, "Perf", place, row, row[card.table.measurable], row["perf_measured"], "perf")
        ax.plot(
            scores,
            [_height(place, "Perf")] * len(scores),
            linestyle="none",
            marker="|",
            markersize=9,
            color=RULE,
            zorder=2,
            gid=f"components:{place}",
        )
        _draw_kind(ax, "total", place, row, row["total_judged"], row["total_measured"], "total")
        if np.isnan(row["total_judged"]):
            note(ax, str(row["note"]), (0.0, _height(place, "total")), (4.0, 0.0), y_in="data")
        note(ax, str(row["option"]), (0.0, place), (-46.0, 0.0), y_in="data", ha="right", weight="bold")
        heights += [_height(place, kind) for kind in _KINDS]
    ax.set_yticks(heights, list(_KINDS) * len(totals))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(totals) - 0.5, -0.5)
    ax.set_xlim(-0.15, 10.15)
    ax.set_xticks(range(11))
    ax.grid(axis="x", color=RULE, linewidth=0.5, alpha=0.5)
    ax.set_axisbelow(True)
    ax.set_xlabel("score (0 to 10)")
    legend_below(ax, _legend(), columns=4)
    dress(ax, f"{card.table.name}: what was judged, and what was measured", context_of_card(card))
    return ax


def _draw_kind(ax: Axes, kind: str, place: int, row: dict[Any, Any], judged: float, measured: float, name: str) -> None:
    height, colour = _height(place, kind), colour_of(str(row["alternative"]))
    marker = _marker(kind)
    ax.plot(
        [row[f"{name}_low"], row[f"{name}_high"]],
        [height, height],
        color=INK,
        linewidth=1.6,
        zorder=2.5,
        gid=f"interval:{kind}:{place}",
    )
    ax.plot(
        [measured],
        [height],
        linestyle="none",
        marker=marker,
        markersize=8,
        color=colour,
        markeredgecolor=PAPER,
        zorder=3,
        gid=f"measured:{kind}:{place}",
    )
    hollow: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.5}
    ax.plot(
        [judged],
        [height],
        linestyle="none",
        marker=marker,
        markersize=9,
        zorder=3.5,
        gid=f"judged:{kind}:{place}",
        **hollow,
    )


def _height(place: int, kind: str) -> float:
    return place - 0.22 + 0.44 * _KINDS.index(kind)


def _marker(kind: str) -> str:
    return "s" if kind == "Perf" else "o"


def _legend() -> list[Artist]:
    none: dict[str, Any] = {"linestyle": "none", "color": OTHER_COLOUR, "markersize": 8}
    return [
        Line2D([], [], label="judged by the record", marker="o", markerfacecolor="none", markeredgewidth=1.5, **none),
        Line2D([], [], label="measured", marker="o", markeredgecolor=PAPER, **none),
        Line2D([], [], label="bar: 95 % bootstrap interval over seeds", color=INK, linewidth=1.6),
        Line2D([], [], label="tick: score of a component", marker="|", **(none | {"color": RULE})),
    ]


def context_of_card(card: ScorecardTables) -> str:
    """What is seen, in a line."""
    return f"{card.table.name} · {card.context} · {card.seeds} seeds"
