"""The HTML of the panels: pictures, tables, text, their style and accessible names.

Every piece is plain HTML, escaped here; colours are the theme's, so that light and dark both read well. Pictures are
dark ink on white paper in either.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any, Final

import ipywidgets as widgets

from docmind_lab.views.plots.look import ON_A_PAGE, png_of
from docmind_lab.views.reports.figures import Drawing
from docmind_lab.views.reports.report_html import table_html
from docmind_lab.views.reports.report_model import Table

# Sharp at the width of a notebook's cell on an ordinary screen; more costs time at every frame.
_DOTS_PER_INCH: Final = 110
PANEL_CLASS: Final = "docmind-panel"
STATUS_CLASS: Final = "docmind-status"
COPY_CLASS: Final = "docmind-copy"
CODE_CLASS: Final = "docmind-code"


def style_and_script() -> list[Any]:
    """Return invisible widgets with a panel's style and the script that names its controls."""
    files = resources.files("docmind_lab.views.panels")
    style, script = (files.joinpath(name).read_text(encoding="utf-8") for name in ("panel.css", "panel.js"))
    page = {"text/html": f"<script>\n{script}</script>", "text/plain": ""}
    output = widgets.Output(outputs=({"output_type": "display_data", "metadata": {}, "data": page},))
    output.add_class("docmind-script")
    return [widgets.HTML(f"<style>\n{style}</style>"), output]


def close_all(widget: Any) -> None:
    """Close a widget and all its children, which closing a container alone would leave in the kernel."""
    for child in getattr(widget, "children", ()):
        close_all(child)
    widget.close()


@dataclass(frozen=True)
class Picture:
    """An image (PNG) with its alternative text and the table of its numbers."""

    png: bytes
    alt: str
    table: Table


def picture_of(drawing: Drawing) -> Picture:
    """Draw a figure, with the first of its tables; in any thread, and no figure is left open.

    Raises: what drawing it raises.
    """
    return Picture(png_of(drawing.draw(ON_A_PAGE), _DOTS_PER_INCH), drawing.alt, drawing.tables[0])


def figure_html(picture: Picture, changed: str = "") -> str:
    """Return a picture and its table as HTML.

    changed: what has been changed since it was drawn, in words; it is then pale.
    """
    image = base64.b64encode(picture.png).decode()
    note = f'<p class="note">Below are the runs before: {escape(changed)}.</p>' if changed else ""
    kind = ' class="old"' if changed else ""
    return (
        f'{note}<figure{kind}><img alt="{escape(picture.alt)}" src="data:image/png;base64,{image}"></figure>'
        f"{table_html(picture.table)}"
    )


def text_html(text: str) -> str:
    """Return a paragraph as HTML."""
    return f"<p>{escape(text)}</p>"


def wide_html(name: str, content: str) -> str:
    """Return trusted HTML in a named region that the keyboard can scroll."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">{content}</div>'


def code_html(code: str) -> str:
    """Return Python code as HTML."""
    return f"<pre>{escape(code)}</pre>"
