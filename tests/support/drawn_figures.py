"""What every figure of the project keeps to: dark words on white paper, none on another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from docmind_lab.views.plots.look import INK, PAPER


def words_of(ax: Axes) -> list[Text]:
    """Every text that is to be seen: neither hidden, nor the label of a tick beyond the axis."""
    beyond = {
        label
        for labels, ticks, (low, high) in (
            (ax.get_xticklabels(), ax.get_xticks(), sorted(ax.get_xlim())),
            (ax.get_yticklabels(), ax.get_yticks(), sorted(ax.get_ylim())),
        )
        for label, at in zip(labels, ticks, strict=True)
        if not low <= at <= high
    }
    return [word for word in ax.findobj(Text) if word.get_text() and word.get_visible() and word not in beyond]


def assert_dark_on_white(plot: Callable[..., Axes], *drawn: Any) -> None:
    """Axes that are handed in come back dark on white, even under a dark style."""
    with plt.style.context("dark_background"):
        _, ax = plt.subplots()
        assert plot(*drawn, ax=ax) is ax
    assert ax.get_facecolor() == ax.figure.get_facecolor() == to_rgba(PAPER)
    assert {to_hex(text.get_color()).upper() for text in words_of(ax)} == {INK}


def assert_words_apart(ax: Axes) -> None:
    """Text is of 8 pt at least, none covers another, and all of it is on the page."""
    ax.figure.canvas.draw()
    legend, words = ax.get_legend(), words_of(ax)
    assert len(words) > 10
    assert all(text.get_fontsize() >= 8 for text in words)
    boxes = [(text.get_text(), text.get_window_extent()) for text in words if text not in legend.get_texts()]
    boxes.append(("legend", legend.get_window_extent()))
    # A box has the ascent and descent of the font: lines may touch by a point or two where no letter does.
    touching = [(a, b) for (a, first), (b, second) in combinations(boxes, 2) if first.padded(-1.5).overlaps(second)]
    assert touching == []
    page = ax.figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for _, box in boxes)


def described(ax: Axes) -> str:
    """The words of a figure, and each thing in it that has a name: where it is, its colours and marks."""
    ax.figure.canvas.draw()
    named = [artist for artist in (*ax.patches, *ax.lines, *ax.collections) if artist.get_gid()]
    return "\n".join([*_words(ax), *sorted(f"{artist.get_gid()}: {_drawn(artist)}" for artist in named)])


def _words(ax: Axes) -> Iterator[str]:
    yield f"title: {ax.get_title(loc='left')}"
    for axis in (ax.xaxis, ax.yaxis):
        ticks = [text.get_text() for text in axis.get_ticklabels()]
        yield f"{axis.axis_name}: {axis.get_label_text()}: {' | '.join(filter(None, ticks))}"
    legend = ax.get_legend()
    yield f"legend: {' | '.join(text.get_text() for text in legend.get_texts()) if legend else ''}"
    yield from (f"text: {text.get_text()!r} {text.get_fontweight()}" for text in ax.texts)


def _drawn(artist: Artist) -> str:
    if isinstance(artist, Line2D):
        at = f"x {_numbers(artist.get_xdata())}, y {_numbers(artist.get_ydata())}"
        style = [artist.get_linestyle(), artist.get_drawstyle(), artist.get_marker()]
        edge = artist.get_markeredgecolor() if artist.get_linestyle() == "None" else artist.get_color()
        return f"{at}, {' '.join(map(str, style))}, {edge} on {artist.get_markerfacecolor()}"
    if isinstance(artist, Collection):
        corners = np.concatenate([path.vertices for path in artist.get_paths()])
        colours = {to_hex(colour) for colour in (*artist.get_facecolor(), *artist.get_edgecolor())}
        box = f"x {_numbers(np.unique(corners[:, 0])[[0, -1]])}, y {_numbers(np.unique(corners[:, 1])[[0, -1]])}"
        return f"{len(artist.get_paths())} of {box}, {' '.join(sorted(colours))}"
    assert isinstance(artist, Rectangle)
    x, y = (artist.get_x(), artist.get_x() + artist.get_width()), (artist.get_y(), artist.get_y() + artist.get_height())
    return f"x {_numbers(x)}, y {_numbers(y)}, {to_hex(artist.get_facecolor())} {artist.get_hatch() or ''}".rstrip()


def _numbers(values: Any) -> str:
    return " ".join(f"{value:.4g}" for value in np.asarray(values, dtype="float64").ravel())
