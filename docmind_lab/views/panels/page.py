"""The HTML of the panels: pictures, tables, text, their style and accessible names.

Every piece is plain HTML, escaped here; colours are the theme's, so that light and dark both read well. Pictures are
dark ink on white paper in either.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any, Final

import ipywidgets as widgets

from docmind_lab.tables.frames import StudyTables
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
class TimeAxis:
    """The position of the time axis in a picture, in shares of its width and height; instants in seconds."""

    left: float
    right: float
    begins_at_s: float
    ends_at_s: float
    top: float
    bottom: float

    def place(self, at_s: float) -> float:
        """Return the share of the picture's width at an instant; instants beyond the axis are at its end."""
        share = (at_s - self.begins_at_s) / (self.ends_at_s - self.begins_at_s)
        return self.left + (self.right - self.left) * min(max(share, 0.0), 1.0)


@dataclass(frozen=True)
class Picture:
    """An image (PNG) with its alternative text and the table of its numbers.

    decision_timeout_s: of the runs in it. time_axis: None where the picture has no line of time.
    """

    png: bytes
    alt: str
    table: Table
    decision_timeout_s: float
    time_axis: TimeAxis | None = None


def picture_of(drawing: Drawing, study: StudyTables, *, has_time: bool = True) -> Picture:
    """Draw a figure of a study, with the first of its tables; in any thread, and no figure is left open.

    has_time: whether its horizontal axis is the time of a run. Raises: what drawing it raises.
    """
    ax = drawing.draw(ON_A_PAGE)
    png = png_of(ax, _DOTS_PER_INCH)
    # After saving, when the layout has settled.
    box, (begins_at_s, ends_at_s) = ax.get_position(), ax.get_xlim()
    axis = TimeAxis(box.x0, box.x1, begins_at_s, ends_at_s, 1.0 - box.y1, 1.0 - box.y0)
    timeout_s = float(study.runs["decision_timeout_s"].iloc[0]) if len(study.runs) else math.nan
    return Picture(png, drawing.alt, drawing.tables[0], timeout_s, axis if has_time else None)


def figure_html(picture: Picture, changed: str = "", decision_timeout_s: float = math.nan) -> str:
    """Return a picture and its table as HTML.

    changed: what has been changed since it was drawn, in words; it is then pale, and has a line where the deadline is
    now. decision_timeout_s: that deadline.
    """
    image = base64.b64encode(picture.png).decode()
    moved = bool(changed) and decision_timeout_s != picture.decision_timeout_s
    note = f'<p class="note">Below are the runs before: {escape(changed)}.</p>' if changed else ""
    mark = _mark(picture, decision_timeout_s) if moved else ""
    kind = ' class="old"' if changed else ""
    return (
        f'{note}<figure{kind}><img alt="{escape(picture.alt)}" src="data:image/png;base64,{image}">{mark}</figure>'
        f"{table_html(picture.table)}"
    )


def _mark(picture: Picture, moved_to_s: float) -> str:
    """Return a line at the current deadline, for a picture drawn under an earlier one."""
    axis = picture.time_axis
    if axis is None:
        return ""
    left = axis.place(moved_to_s)
    side = "at-end" if left > (axis.left + axis.right) / 2 else "at-begin"
    place = f"left:{left:.2%};top:{axis.top:.2%};height:{axis.bottom - axis.top:.2%}"
    beyond = " →" if moved_to_s > axis.ends_at_s else ""
    return f'<div class="mark {side}" style="{place}"><span>deadline {moved_to_s:g} s{beyond}</span></div>'


def lines_html(name: str, lines: Iterable[str]) -> str:
    """Return lines of preformatted text as HTML, in a named region that the keyboard can scroll."""
    text = "\n".join(lines)
    return f"{_scroll(name)}<pre>{escape(text)}</pre></div>"


def text_html(text: str) -> str:
    """Return a paragraph as HTML."""
    return f"<p>{escape(text)}</p>"


def wide_html(name: str, content: str) -> str:
    """Return trusted HTML in a named region that the keyboard can scroll."""
    return f"{_scroll(name)}{content}</div>"


def code_html(code: str) -> str:
    """Return Python code as HTML."""
    return f"<pre>{escape(code)}</pre>"


def _scroll(name: str) -> str:
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
