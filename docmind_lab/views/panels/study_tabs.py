"""The tabs of a panel: Timeline, Completion, Overrun, Table. Only the one in front is drawn."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import ipywidgets as widgets
import traitlets

from docmind_lab.findings.study import Study
from docmind_lab.views import plots
from docmind_lab.views.panels.page import Picture, figure_html, picture_of, text_html, wide_html
from docmind_lab.views.panels.panel_run import changes
from docmind_lab.views.panels.panel_settings import PanelChoice
from docmind_lab.views.reports.figures import completion_of, overrun_of, timeline_of
from docmind_lab.views.reports.report_tables import table_of

VIEWS: Final = ("Timeline", "Completion", "Overrun", "Table")
MOST_LATE_WORK: Final = -1
"""Selects the question with the most work after its deadline, the default."""

Content = Picture | str
"""The content of a tab: a picture with its table, or HTML."""


class StudyTabs(traitlets.HasTraits):
    """The views of one set of tables. view: the tab in front. question_seed: the question of the timeline.

    Drawing has two steps, so that the slow one can be in any thread: `draw` makes the content of the view in front,
    `put` shows it.
    """

    view = traitlets.Enum(VIEWS, "Timeline")
    question_seed = traitlets.Int(MOST_LATE_WORK)

    def __init__(self, redraw: Callable[[], None]) -> None:
        super().__init__()
        self._redraw = redraw
        self._pictures: dict[str, tuple[Picture, PanelChoice]] = {}
        self._filling = False
        self._pages = {name: widgets.HTML(text_html("No run is done yet.")) for name in VIEWS}
        self._question = widgets.Dropdown(
            description="Question (seed)",
            options=[("most work after the deadline", MOST_LATE_WORK)],
            style={"description_width": "initial"},
        )
        children = [
            widgets.VBox([self._question, self._pages["Timeline"]]),
            *(self._pages[name] for name in ("Completion", "Overrun", "Table")),
        ]
        self.widget = widgets.Tab(children=children, titles=VIEWS, selected_index=0)
        traitlets.link((self, "view"), (self.widget, "selected_index"), (VIEWS.index, lambda index: VIEWS[index or 0]))
        self._question.observe(self._question_chosen, "value")
        self.observe(lambda _: self._redraw(), ["view", "question_seed"])

    def draw(self, study: Study) -> Content:
        """Return the content of the view in front; takes some tenths of a second and touches no widget."""
        try:
            return self._drawers()[self.view](study)
        except Exception as error:  # noqa: BLE001 - a tab that cannot be drawn says why; the others still can
            return text_html(f"{self.view} cannot be drawn: {error}")

    def put(self, view: str, content: Content, study: Study, choice: PanelChoice) -> None:
        """Show the drawn content of a view. choice: the settings of its runs."""
        self._offer_questions(study)
        self._pictures.pop(view, None)
        if isinstance(content, Picture):
            self._pictures[view] = content, choice
            self._pages[view].value = figure_html(content)
        else:
            self._pages[view].value = content

    def page(self, view: str) -> Any:
        """Return the widget of a view; its `value` is HTML."""
        return self._pages[view]

    def mark(self, now: PanelChoice) -> None:
        """Mark in the picture in front what has changed since it was drawn, without drawing it again."""
        if self.view in self._pictures:
            picture, drawn_for = self._pictures[self.view]
            self._pages[self.view].value = figure_html(picture, changes(drawn_for, now))

    def _drawers(self) -> Mapping[str, Callable[[Study], Content]]:
        return {
            "Timeline": functools.partial(_timeline, self.question_seed),
            "Completion": _completion,
            "Overrun": lambda study: picture_of(overrun_of(study)),
            "Table": lambda study: wide_html("Summary of the study", study._repr_html_()),
        }

    def _question_chosen(self, change: Any) -> None:
        # A list whose options change chooses among them by itself, which nobody meant.
        if not self._filling:
            self.question_seed = change.new

    def _offer_questions(self, study: Study) -> None:
        seeds = sorted({int(seed) for seed in study.runs["seed"]} | {self.question_seed} - {MOST_LATE_WORK})
        options = [("most work after the deadline", MOST_LATE_WORK), *((str(seed), seed) for seed in seeds)]
        if list(self._question.options) != options:
            self._filling = True
            self._question.options = options
            self._question.value = self.question_seed
            self._filling = False


def _timeline(seed: int, study: Study) -> Picture:
    known = set(study.runs["seed"])
    return picture_of(timeline_of(study, seed=seed if seed in known else None))


def _completion(study: Study) -> Picture:
    """Return the curves with the share of each arm at the deadline, in place of all their steps."""
    frame = plots.completion_frame(study)
    timeout_s = float(study.runs["decision_timeout_s"].iloc[0])
    ends = frame[frame["at_s"] <= timeout_s].drop_duplicates("group", keep="last")
    table = table_of("Answered by the deadline, bands at 95 %", ends.drop(columns=["at_s"]))
    return picture_of(dataclasses.replace(completion_of(study), tables=(table,)))
