"""Figures as images that a page can hold: drawn without pyplot, as SVG if it is simple, else as PNG."""

from __future__ import annotations

import io
from collections.abc import Callable

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from PIL import Image

SVG, PNG = "image/svg+xml", "image/png"

# As SVG lines and letters are sharp at any size, but every point is an element of its own: with more than these a
# bitmap is smaller, and written in a tenth of the time.
_MOST_ELEMENTS = 250
_DOTS_PER_INCH = 150
# Title, axis and legend of a single arm leave nothing to draw on below this.
_LEAST_HEIGHT_IN = 4.0
# Figures are flat tints of a few hues on white: a palette holds them without any difference to be seen.
_PALETTE = 128
# Neither the instant nor a random name of a marker: the same study gives the same page.
_SVG_METADATA = {"Date": None, "Creator": None, "Type": None, "Format": None}


def drawn(draw: Callable[[Axes], object], size_in: tuple[float, float]) -> tuple[bytes, str]:
    """The image that `draw` makes on axes of this size (width, height, inches), and its media type.

    Raises: what `draw` raises.
    """
    width_in, height_in = size_in
    figure = Canvas(figsize=(width_in, max(height_in, _LEAST_HEIGHT_IN)), layout="constrained")
    FigureCanvasAgg(figure)
    ax: Axes = figure.subplots()
    draw(ax)
    return (_svg(figure), SVG) if _elements(ax) <= _MOST_ELEMENTS else (_png(figure), PNG)


def _elements(ax: Axes) -> int:
    """How many shapes the axes have, text apart: a line is one, its markers are one each."""
    unmarked = ("None", "none", "", " ")
    lines = [1 if str(line.get_marker()) in unmarked else np.size(line.get_xdata()) for line in ax.lines]
    return sum(lines) + sum(len(collection.get_paths()) for collection in ax.collections) + len(ax.patches)


def _svg(figure: Canvas) -> bytes:
    buffer = io.BytesIO()
    # Letters as outlines: who reads the page need not have the font.
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "docmind_lab"}):
        figure.savefig(buffer, format="svg", facecolor=figure.get_facecolor(), metadata=_SVG_METADATA)
    return buffer.getvalue()


def _png(figure: Canvas) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH, facecolor=figure.get_facecolor())
    small = io.BytesIO()
    with Image.open(buffer) as image:
        image.convert("RGB").quantize(_PALETTE).save(small, format="png", optimize=True)
    return small.getvalue()
