"""The tabs of a panel: Timeline, Completion, Overrun, Table, Calls. Only the one in front is drawn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import ipywidgets as widgets
import traitlets

from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import StudyTables, to_frame
from docmind_lab.interfaces.panels.choice import PanelChoice
from docmind_lab.interfaces.panels.page import figure_html, text_html, wide_html
from docmind_lab.interfaces.panels.panel_run import changes
from docmind_lab.interfaces.panels.pictures import Picture, completion_picture, overrun_picture, timeline_picture
from docmind_lab.interfaces.panels.run_calls import RunCalls

VIEWS: Final = ("Timeline", "Completion", "Overrun", "Table", "Calls")
MOST_LATE_WORK: Final = -1
"""Selects the question with the most work after its deadline, the default."""

Content = Picture | str | StudyTables
"""The content of a tab: a picture with its table, HTML, or the tables themselves."""


class StudyTabs(traitlets.HasTraits):
    """The views of one set of tables. view: the tab in front. question_seed: the question of the timeline.

    Drawing has two steps, so that the slow one can be in any thread: `draw` makes the content of the view in front,
    `put` shows it.
    """

    view = traitlets.Enum(VIEWS, "Timeline")
    question_seed = traitlets.Int(MOST_LATE_WORK)

    def __init__(self, redraw: Callable[[], None]) -> None:
        super().__init__()
        self.manifest: Mapping[str, Any] = {}
        self._redraw = redraw
        self._pictures: dict[str, tuple[Picture, PanelChoice | None]] = {}
        self._filling = False
        self._pages = {name: widgets.HTML(text_html("No run is done yet.")) for name in VIEWS if name != "Calls"}
        self._question = widgets.Dropdown(
            description="Question (seed)",
            options=[("most work after the deadline", MOST_LATE_WORK)],
            style={"description_width": "initial"},
        )
        self.calls = RunCalls()
        children = [
            widgets.VBox([self._question, self._pages["Timeline"]]),
            *(self._pages[name] for name in ("Completion", "Overrun", "Table")),
            self.calls.view,
        ]
        self._tab = widgets.Tab(children=children, titles=VIEWS, selected_index=0)
        self.widget = self._tab
        traitlets.link((self, "view"), (self._tab, "selected_index"), (VIEWS.index, lambda index: VIEWS[index or 0]))
        self._question.observe(self._question_chosen, "value")
        self.observe(lambda _: self._redraw(), ["view", "question_seed"])

    def draw(self, tables: StudyTables) -> Content:
        """Return the content of the view in front; takes some tenths of a second and touches no widget."""
        try:
            return self._drawers()[self.view](tables)
        except Exception as error:  # noqa: BLE001 - a tab that cannot be drawn says why; the others still can
            return text_html(f"{self.view} cannot be drawn: {error}")

    def put(self, view: str, content: Content, tables: StudyTables, choice: PanelChoice | None = None) -> None:
        """Show the drawn content of a view. choice: the settings of its runs; None if they cannot change."""
        self._offer_questions(tables)
        self._pictures.pop(view, None)
        if isinstance(content, Picture):
            self._pictures[view] = content, choice
            self._pages[view].value = figure_html(content)
        elif isinstance(content, str):
            self._pages[view].value = content
        else:
            self.calls.show(content)

    def page(self, view: str) -> Any:
        """Return the widget of a view other than Calls; its `value` is HTML."""
        return self._pages[view]

    def mark(self, now: PanelChoice) -> None:
        """Mark in the picture in front what has changed since it was drawn, without drawing it again."""
        picture, drawn_for = self._pictures.get(self.view, (None, None))
        if picture is not None and drawn_for is not None:
            self._pages[self.view].value = figure_html(picture, changes(drawn_for, now), now.decision_timeout_s)

    def _drawers(self) -> Mapping[str, Callable[[StudyTables], Content]]:
        return {
            "Timeline": functools.partial(_timeline, self.question_seed),
            "Completion": completion_picture,
            "Overrun": overrun_picture,
            "Table": functools.partial(_summary_html, self.manifest),
            "Calls": lambda tables: tables,
        }

    def _question_chosen(self, change: Any) -> None:
        # A list whose options change chooses among them by itself, which nobody meant.
        if not self._filling:
            self.question_seed = change.new

    def _offer_questions(self, tables: StudyTables) -> None:
        seeds = sorted({int(seed) for seed in tables.runs["seed"]} | {self.question_seed} - {MOST_LATE_WORK})
        options = [("most work after the deadline", MOST_LATE_WORK), *((str(seed), seed) for seed in seeds)]
        if list(self._question.options) != options:
            self._filling = True
            self._question.options = options
            self._question.value = self.question_seed
            self._filling = False


def _timeline(seed: int, tables: StudyTables) -> Picture:
    known = set(tables.runs["seed"])
    return timeline_picture(tables, seed if seed in known else None)


def _summary_html(manifest: Mapping[str, Any], tables: StudyTables) -> str:
    """Return a study's notebook summary as HTML; it reads no events."""
    study = Study(tables.runs, tables.calls, to_frame("events", []), manifest)
    return wide_html("Summary of the study", study._repr_html_())
