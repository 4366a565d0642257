"""What every figure of the project keeps to: dark words on white paper, none on another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba
from matplotlib.text import Text

from docmind_lab.analysis.plots.look import INK, PAPER


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
