"""The HTML of the panels: pictures, tables, text, their style and accessible names.

Every piece is plain HTML, escaped here; colours are the theme's, so that light and dark both read well. Pictures are
dark ink on white paper in either.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from html import escape
from typing import Any, Final

import ipywidgets as widgets

from docmind_lab.interfaces.panels.pictures import Picture
from docmind_lab.interfaces.reports.model import Table

PANEL_CLASS: Final = "docmind-panel"
STATUS_CLASS: Final = "docmind-status"
COPY_CLASS: Final = "docmind-copy"
CODE_CLASS: Final = "docmind-code"

_STYLE: Final = """<style>
.docmind-panel { color: var(--jp-ui-font-color1, inherit); max-width: 1120px; overflow: visible; }
.docmind-panel .widget-html-content { line-height: 1.45; }
.docmind-panel .docmind-row { display: flex; flex-flow: row wrap; gap: 2px 14px; align-items: center; }
.docmind-panel figure { position: relative; margin: 0; background: #fff; }
.docmind-panel figure img { display: block; width: 100%; height: auto; }
.docmind-panel figure.old img { opacity: .45; }
.docmind-panel .mark { position: absolute; width: 0; border-left: 3px dashed #1a1a1a; }
.docmind-panel .mark span { position: absolute; top: 0; white-space: nowrap; padding: 1px 5px; font-weight: 600;
  color: #1a1a1a; background: #fff; border: 1px solid #1a1a1a; }
.docmind-panel .mark.at-end span { right: 4px; }
.docmind-panel .mark.at-begin span { left: 4px; }
.docmind-panel .note { margin: 4px 0; font-weight: 600; }
.docmind-panel .scroll { overflow-x: auto; margin: 6px 0; }
.docmind-panel .scroll.long { max-height: 24em; overflow-y: auto; }
.docmind-panel table { border-collapse: collapse; font-size: 12px; color: var(--jp-ui-font-color1, inherit); }
.docmind-panel caption { text-align: left; font-weight: 600; padding: 2px 0; white-space: nowrap; }
.docmind-panel th, .docmind-panel td { padding: 2px 8px; text-align: right; vertical-align: top;
  border-bottom: 1px solid var(--jp-border-color1, #888); }
.docmind-panel tbody th, .docmind-panel .left, .docmind-panel thead th:first-child { text-align: left; }
.docmind-panel pre { margin: 4px 0; font-size: 12px; line-height: 1.3; color: var(--jp-ui-font-color1, inherit);
  font-family: var(--jp-code-font-family, monospace); background: transparent; }
.docmind-panel .docmind-code pre { white-space: pre-wrap; }
.docmind-panel .docmind-status { min-height: 1.6em; font-weight: 600; height: auto; }
.docmind-panel .docmind-status .widget-html-content { white-space: normal; }
.docmind-panel :focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 2px; }
.docmind-panel .docmind-script { display: none; }
</style>"""

# ipywidgets gives the handle of a slider no accessible name, has no live region and cannot reach a clipboard. This
# names the one (its value is the exponent of a log slider: what is read out is the readout), makes the status the
# other, and copies. Without it, as in a static export, everything else still works. Widgets appear one by one and are
# made anew, so it is done again whenever something in the panel changes.
_SCRIPT: Final = """<script>
(() => {
  const set = (node, name, value) => { if (node && node.getAttribute(name) !== value) node.setAttribute(name, value); };
  const dress = (panel) => {
    for (const slider of panel.querySelectorAll('.widget-slider')) {
      const handle = slider.querySelector('.noUi-handle');
      set(handle, 'aria-label', slider.querySelector('label')?.textContent ?? '');
      set(handle, 'aria-valuetext', (slider.querySelector('.widget-readout')?.textContent ?? '') + ' s');
    }
    for (const status of panel.querySelectorAll('.docmind-status .widget-html-content')) {
      set(status, 'role', 'status');
      set(status, 'aria-live', 'polite');
    }
  };
  const copy = async (event) => {
    const button = event.target.closest?.('.docmind-copy');
    if (!button) return;
    const code = button.closest('.docmind-panel').querySelector('.docmind-code pre').textContent;
    try { await navigator.clipboard.writeText(code); button.textContent = 'Copied'; }
    catch { button.textContent = 'Select and copy it'; }
    setTimeout(() => { button.textContent = 'Copy code'; }, 2000);
  };
  const begin = (left) => {
    for (const panel of document.querySelectorAll('.docmind-panel:not([data-dressed])')) {
      panel.dataset.dressed = 'yes';
      dress(panel);
      new MutationObserver(() => dress(panel)).observe(panel, { subtree: true, childList: true, characterData: true });
      panel.addEventListener('click', copy);
    }
    if (left > 0) setTimeout(begin, 200, left - 1);
  };
  begin(25);
})();
</script>"""


def style_and_script() -> list[Any]:
    """Return invisible widgets with a panel's style and the script that names its controls."""
    output = {"output_type": "display_data", "metadata": {}, "data": {"text/html": _SCRIPT, "text/plain": ""}}
    script = widgets.Output(outputs=(output,))
    script.add_class("docmind-script")
    return [widgets.HTML(_STYLE), script]


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
