"""The HTML of a panel's views: a figure in the colours of the page, with words and a table beside it."""

from __future__ import annotations

import dataclasses
import io
import re
from html import escape
from typing import Final

from docmind_lab.core.randomness import run_seed
from docmind_lab.findings.study import Study
from docmind_lab.views import plots
from docmind_lab.views.plots.look import BAND, INK, PAPER, RULE, Offscreen, colour_of
from docmind_lab.views.reports.figures import Drawing, completion_of, overrun_of, timeline_of
from docmind_lab.views.reports.report_page import table_html
from docmind_lab.views.reports.report_tables import table_of

VIEWS: Final = ("Timeline", "Completion", "Overrun", "Table")
MOST_LATE_WORK: Final = 0
"""Selects the question with the most work after its deadline, in place of a question's number."""

# Colours of a figure's paper and text → those of the page that it stands on; of what is drawn, black alone is changed.
_OF_THE_PAGE: Final = {PAPER: "paper", INK: "ink", RULE: "rule", BAND: "band", colour_of("unguarded"): "ink"}
_WIDE, _NARROW = Offscreen(least_height_in=4.0), Offscreen(least_height_in=4.0, most_width_in=4.8)


def view_html(view: str, study: Study, question: int = MOST_LATE_WORK, *, narrow: bool = False) -> str:
    """Return a view of a study as HTML; takes some tenths of a second.

    view: one of `VIEWS`. question: number of the timeline's question. narrow: whether figures are drawn for a phone.
    """
    try:
        if view == "Table":
            return f'<div class="scroll" tabindex="0" role="region" aria-label="Table">{study._repr_html_()}</div>'
        drawing = _drawing(view, study, question)
        ax = drawing.draw(_NARROW if narrow else _WIDE)
    except Exception as error:  # noqa: BLE001 - a view that cannot be drawn says why; the others still can
        return f'<p class="error">{view} cannot be drawn: {escape(str(error))}</p>'
    buffer, figure = io.StringIO(), ax.get_figure(root=True)
    assert figure is not None
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    figure_html = _on_the_page(buffer.getvalue(), drawing.alt)
    return f'<figure aria-label="{view}">{figure_html}</figure>{table_html(drawing.tables[0])}'


def _drawing(view: str, study: Study, question: int) -> Drawing:
    if view == "Timeline":
        seed = run_seed(study.manifest["design"]["seed"], question) if question else None
        return timeline_of(study, seed=seed if seed in set(study.runs["seed"]) else None)
    if view == "Overrun":
        return overrun_of(study)
    # The share of each arm at the deadline, in place of all steps of the curves.
    frame = plots.completion_frame(study)
    timeout_s = float(study.runs["decision_timeout_s"].iloc[0])
    ends = frame[frame["at_s"] <= timeout_s].drop_duplicates("group", keep="last")
    table = table_of("Answered by the deadline, bands at 95 %", ends.drop(columns=["at_s"]))
    return dataclasses.replace(completion_of(study), tables=(table,))


def _on_the_page(svg: str, alt: str) -> str:
    """Return an SVG file as an element of a page, described in words, with the page's colours."""
    for colour, name in _OF_THE_PAGE.items():
        svg = svg.replace(colour.lower(), f"var(--docmind-{name})")
    # Glyphs of two figures in one page have one name, and one figure may go.
    svg = svg.replace("DejaVuSans-", f"docmind-{abs(hash(svg)):x}-")
    head, _, drawn = svg[svg.index("<svg ") :].partition(">")
    return re.sub(r' (?:width|height)="[^"]*"', "", head) + f' role="img" aria-label="{escape(alt)}">{drawn}'
