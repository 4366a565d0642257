"""The style that all figures share: colours, text sizes, axes and legends, and which runs are drawn together.

Paper and ink are set on the figure and its axes, also on axes that are handed in: on a dark theme a transparent figure
would put dark text on a dark page. Text is always ink. Colour only repeats what a label or a shape says too.
"""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation

from docmind_lab.core.alternative_catalogue import CATALOGUE, default_alternatives
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.whole_files import as_bytes, write_or_refuse
from docmind_lab.tables.conditions import conditions_in_words, require_one_condition, with_arms

COLOURS: Final[Mapping[str, str]] = MappingProxyType({name: CATALOGUE[name].colour for name in default_alternatives()})
"""Colour of each alternative, safe for the colour-blind and the same in every figure."""

OTHER_COLOUR: Final = "#7A7A7A"
PAPER, INK, RULE, BAND = "#FFFFFF", "#1A1A1A", "#8C8C8C", "#F4F4F4"
TEXT_PT, SMALL_PT, TITLE_PT = 9.0, 8.0, 11.0
DASHES: Final = ("solid", "solid", (0, (6, 2)), (0, (4, 1.5, 1, 1.5)), (0, (2, 1.2)), (0, (1, 1)), (0, (8, 2, 2, 2)))
"""The dashes of lines that may coincide, in the order of their groups."""

_GOLDEN_RATIO: Final = 0.6180339887498949  # its multiples, modulo 1, never cluster
_CONTEXT_CHARACTERS = 115  # about the width of the narrowest figure
_PHONE_IN = 6.0  # a figure that is less wide has its words in more lines
_CHARACTERS_PER_INCH: Final[Mapping[str, int]] = {"title": 6, "context": 9, "label": 8}
_LEGEND_BELOW_IN = 0.48  # below tick labels and the label of the axis, whatever the height of the figure


def colour_of(alternative: str) -> str:
    """Return the colour of an alternative; grey for those that are not in the catalogue."""
    return CATALOGUE[alternative].colour if alternative in CATALOGUE else OTHER_COLOUR


def seconds_text(value_s: float) -> str:
    """Format a duration in a readable unit: "0 s", "5.4 ms", "362 ms", "3.36 s"."""
    if value_s == 0:
        return "0 s"
    if abs(value_s) < 0.9995:
        return f"{value_s * 1000:.2g} ms" if abs(value_s) < 0.00995 else f"{value_s * 1000:.0f} ms"
    return f"{value_s:.3g} s"


def spread_of_seeds(seeds: pd.Series[Any]) -> pd.Series[float]:
    """Return a position from −0.5 to 0.5 by the rank of each seed: one question lies at one height in every row.

    Neighbours lie apart, without randomness.
    """
    return ((seeds.rank(method="dense") - 1) * _GOLDEN_RATIO + 0.5) % 1.0 - 0.5


@dataclass(frozen=True)
class Offscreen:
    """Stands for axes on a new figure without pyplot: it needs no display, and no figure is left open.

    least_height_in: inches; a figure that is lower is made this high. most_width_in: inches; a figure that is wider is
    made this wide, with its words in more lines.
    """

    least_height_in: float = 0.0
    most_width_in: float = math.inf


Canvas = Axes | Offscreen | None
"""What is drawn on: axes, a new figure without pyplot, or, if None, one of pyplot's, so that a notebook shows it."""


def axes_for(canvas: Canvas, width_in: float, height_in: float) -> Axes:
    """Return the axes that are handed in, or those of a new figure of this size.

    Args:
        canvas: What is drawn on.
        width_in: Inches.
        height_in: Inches.
    """
    if isinstance(canvas, Axes):
        return canvas
    if canvas is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415 - slow, and looks for a display; saving figures needs neither

        figure, ax = plt.subplots(figsize=(width_in, height_in), layout="constrained")
        figure.set_facecolor(PAPER)
        return ax
    size = min(width_in, canvas.most_width_in), max(height_in, canvas.least_height_in)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def png_of(ax: Axes, dots_per_inch: int = 150) -> bytes:
    """Return the figure of these axes as a PNG image."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dots_per_inch, facecolor=figure.get_facecolor())
    return buffer.getvalue()


def save_png(ax: Axes, path: str | os.PathLike[str]) -> Path:
    """Write the figure of these axes to a PNG file and return its path. Raises: ConfigurationError if it cannot.

    Args:
        ax: The axes of the figure.
        path: The file.
    """
    return write_or_refuse(Path(path), as_bytes(png_of(ax)))


OFFSCREEN: Final = Offscreen()
ON_A_PAGE: Final = Offscreen(least_height_in=4.0)
"""For pages: a lower figure leaves no room beside title, axis and legend of a single arm."""


def style(ax: Axes, title: str, context: str) -> None:
    """Apply the shared style, title and context to axes, whatever style they had. Call it after all drawing."""
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.set_facecolor(PAPER)
        figure.patch.set_alpha(1.0)
    ax.set_facecolor(PAPER)
    ax.patch.set_alpha(1.0)
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_edgecolor(RULE)
    ax.tick_params(which="both", color=RULE, labelcolor=INK, labelsize=SMALL_PT)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_text("\n".join(in_lines(ax, axis.label.get_text(), "label")))
        axis.label.set_color(INK)
        axis.label.set_fontsize(TEXT_PT)
    # Three lines stand on the upper edge of the axes: labels of lines within it, the context, the title.
    lines = in_lines(ax, context, "context", _CONTEXT_CHARACTERS)
    pad = 29 + (len(lines) - 1) * 1.5 * TEXT_PT
    ax.set_title(
        "\n".join(in_lines(ax, title, "title")), loc="left", fontsize=TITLE_PT, fontweight="bold", color=INK, pad=pad
    )
    note(ax, "\n".join(lines), (0.0, 1.0), (0.0, 16.0), fontsize=TEXT_PT, va="bottom")


def in_lines(ax: Axes, text: str, kind: str, most: int | None = None) -> list[str]:
    """Return a text in lines that a narrow figure has room for.

    kind: what it is. most: characters of a line elsewhere; None for the text as it is.
    """
    if (width_in := _width_of(ax)) < _PHONE_IN:
        most = int(_CHARACTERS_PER_INCH[kind] * width_in)
    return [text] if most is None else textwrap.wrap(text, most)


def _width_of(ax: Axes) -> float:
    """Return the width of the figure of these axes in inches."""
    figure = ax.get_figure(root=True)
    return math.inf if figure is None else figure.get_figwidth()


def note(
    ax: Axes,
    text: str,
    at: tuple[float, float],
    shift_pt: tuple[float, float],
    *,
    x_in: str = "axes fraction",
    y_in: str = "axes fraction",
    ha: str = "left",
    va: str = "center",
    fontsize: float = SMALL_PT,
    weight: str = "normal",
) -> None:
    """Write text beside a point of the axes; x_in, y_in: "data" or "axes fraction"."""
    ax.annotate(
        text,
        at,
        xycoords=(x_in, y_in),
        xytext=shift_pt,
        textcoords="offset points",
        ha=ha,
        va=va,
        fontsize=fontsize,
        fontweight=weight,
        color=INK,
        annotation_clip=False,
    )


def row_bands(ax: Axes, rows: int) -> None:
    """Draw a pale band behind every other row of a figure with a row for each alternative."""
    for row in range(0, rows, 2):
        ax.axhspan(row - 0.5, row + 0.5, color=BAND, linewidth=0, zorder=0)


def label_rows(ax: Axes, rows: int, places: Iterable[float], labels: Iterable[str]) -> None:
    """Label places in the rows of a figure that has one for each alternative, the first on top."""
    ax.set_yticks(list(places), list(labels))
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(rows - 0.5, -0.5)


def fixed_ticks(ax: Axes, ticks: Iterable[float], text: Callable[[float], str] = "{:g}".format) -> None:
    """Put ticks of the horizontal axis at these values alone, each with its text."""
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def percent_ticks(ax: Axes) -> None:
    """Write the shares of the vertical axis as percentages."""
    ax.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))


def faint_grid(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Draw thin lines at the ticks of an axis, below everything else."""
    ax.grid(axis=axis, color=RULE, linewidth=0.5, alpha=0.5)
    ax.set_axisbelow(True)


def line_key(label: str, **style: Any) -> Line2D:
    """Return a handle for a legend: a line."""
    return Line2D([], [], label=label, **style)


def legend_key(label: str, **style: Any) -> Line2D:
    """Return a handle for a legend: a marker without a line."""
    return line_key(label, **{"linestyle": "none", **style})


def median_key(label: str) -> Line2D:
    """Return a legend handle for the upright line at a median."""
    return legend_key(label, color=INK, marker="|", markersize=11, markeredgewidth=2.2)


def line_style(place: int, groups: int) -> dict[str, Any]:
    """Return the width and dashes of one line of several that may coincide: broad ones lie below narrow ones."""
    return {"linewidth": 4.2 - 2.8 * place / max(1, groups - 1), "linestyle": DASHES[place % len(DASHES)]}


def deadline_line(ax: Axes, deadline_s: float) -> None:
    """Draw a labelled vertical line at the deadline."""
    ax.axvline(deadline_s, color=INK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=2.5, gid="deadline")
    text = f"deadline {deadline_s:g} s"
    note(ax, text, (deadline_s, 1.0), (0.0, 3.0), x_in="data", ha="center", va="bottom")


def legend_below(ax: Axes, handles: Iterable[Artist], columns: int) -> None:
    """Draw a legend under the axes, clear of the data and of the axis label."""
    figure = ax.figure
    keys: Sequence[Any] = list(handles)
    below_in = _LEGEND_BELOW_IN + 0.15 * (len(in_lines(ax, ax.xaxis.label.get_text(), "label")) - 1)
    for key in keys:
        key.set_label("\n".join(in_lines(ax, str(key.get_label()), "label")))
    ax.legend(
        handles=keys,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0.0, -below_in, figure.dpi_scale_trans),
        borderaxespad=0.0,
        ncols=1 if _width_of(ax) < _PHONE_IN else columns,
        fontsize=SMALL_PT,
        frameon=False,
        labelcolor=INK,
        handlelength=2.4,
        columnspacing=1.6,
    )


def comparable(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs in the order of every figure, with columns `arm`, `group` (0, 1, …) and `label`.

    Raises: ConfigurationError when there are none, or when they are of several conditions; it names the columns.
    """
    if runs.empty:
        raise ConfigurationError("runs is empty: there is nothing to draw; measure some runs first")
    # A median over two decision timeouts, or two faults, is of neither.
    require_one_condition(runs)
    ordered = with_arms(runs).sort_values(["arm", "seed", "run_id"], ignore_index=True)
    ordered = ordered.astype({"alternative": "str", "alternative_options": "str"})
    return ordered.assign(group=ordered["arm"].cat.codes.astype("int64"), label=ordered["arm"].astype("str"))


def context_of(runs: pd.DataFrame) -> str:
    """Describe the runs in a line: what ran, the timeouts, the question or their number, and their other conditions."""
    seeds = runs["seed"].nunique()
    questions = f"question {runs['question_id'].iloc[0]}" if seeds == 1 else f"{seeds} questions"
    timeouts, *conditions = conditions_in_words(runs)
    return " · ".join([str(runs["workload"].iloc[0]), timeouts, questions, *conditions])


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """Iterate over the rows of a frame, as named tuples."""
    return iter(frame.itertuples(index=False))
