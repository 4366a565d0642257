"""The HTML of the panels: pictures, tables, text, their style and accessible names.

Every piece is plain HTML, escaped here; colours are the theme's, so that light and dark both read well. Pictures are
dark ink on white paper in either.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from html import escape
from importlib import resources
from typing import Any, Final

import ipywidgets as widgets

from docmind_lab.views.panels.pictures import Picture
from docmind_lab.views.reports.model import Table

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


def table_html(table: Table) -> str:
    """Return a table with caption and row headings as HTML, in a region that the keyboard can scroll."""
    heads = "".join(f'<th scope="col"{_left(table, name)}>{escape(str(name))}</th>' for name in table.shown.columns)
    rows = "".join(_row_html(table, row) for row in table.shown.itertuples(index=False, name=None))
    return (
        f"{_scroll(table.caption, is_long=table.is_long)}<table><caption>{escape(table.caption)}</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row_html(table: Table, row: tuple[object, ...]) -> str:
    head, *others = (escape(str(cell)) for cell in row)
    names = list(table.shown.columns)[1:]
    cells = "".join(f"<td{_left(table, name)}>{cell}</td>" for name, cell in zip(names, others, strict=True))
    return f'<tr><th scope="row">{head}</th>{cells}</tr>'


def _left(table: Table, name: object) -> str:
    return ' class="left"' if name in table.left else ""


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


def _scroll(name: str, *, is_long: bool = False) -> str:
    kind = "scroll long" if is_long else "scroll"
    return f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(name)}">'
