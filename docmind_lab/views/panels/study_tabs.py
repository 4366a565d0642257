"""The tabs of a panel: Timeline, Completion, Overrun, Table, Calls. Only the one in front is drawn."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import ipywidgets as widgets
import pandas as pd
import traitlets

from docmind_lab.core.text import one_line
from docmind_lab.findings.run_timeline import RunTimeline
from docmind_lab.findings.study import Study
from docmind_lab.tables.conditions import with_arms
from docmind_lab.tables.frames import StudyTables, to_frame
from docmind_lab.views import plots
from docmind_lab.views.panels.page import Picture, figure_html, lines_html, picture_of, text_html, wide_html
from docmind_lab.views.panels.panel_run import changes
from docmind_lab.views.panels.panel_settings import PanelChoice
from docmind_lab.views.reports.figures import completion_of, overrun_of, timeline_of
from docmind_lab.views.reports.report_html import table_html
from docmind_lab.views.reports.report_tables import table_of

ALL: Final = "all"
_FILTERS: Final = {"role": "Role", "kind": "Kind", "outcome": "Outcome of calls", "seen_from": "Seen from"}
_COLUMNS: Final = [
    *("call_id", "attempt", "seen_from", "kind", "role", "step", "started_at_s", "ended_at_s", "latency_s"),
    *("timeout_s", "remaining_at_start_s", "outcome", "error_type", "started_after_deadline", "ended_after_return"),
]
# Lines of a run's timeline beside a sidebar, on an ordinary screen.
_WIDTH_CHARACTERS: Final = 110
_NAMED: Final = {"style": {"description_width": "initial"}}


class RunCalls(traitlets.HasTraits):
    """The tab Calls. run_id: the run that is shown. where: filters by column (role, kind, outcome, seen_from)."""

    run_id = traitlets.Unicode("")
    where: traitlets.Dict[str, str] = traitlets.Dict()

    def __init__(self) -> None:
        super().__init__()
        self._tables: StudyTables | None = None
        self._filling = False
        self._runs = widgets.Select(description="Runs", options=[], rows=8, layout={"width": "100%"}, **_NAMED)
        self._filters = {
            column: widgets.Dropdown(description=text, options=[ALL], **_NAMED) for column, text in _FILTERS.items()
        }
        self._timeline, self._calls = widgets.HTML(), widgets.HTML()
        filters = widgets.Box([*self._filters.values()])
        filters.add_class("docmind-row")
        self.view = widgets.VBox([self._runs, self._timeline, filters, self._calls])
        for widget in (self._runs, *self._filters.values()):
            widget.observe(self._choose, "value")
        self.observe(lambda _: self._draw(), ["run_id", "where"])

    def show(self, tables: StudyTables) -> None:
        """Show other tables, at the same run if they have it."""
        self._tables = tables
        rows = with_arms(tables.runs).sort_values(["arm", "seed", "run_id"])
        options = [(_run_text(row), str(row["run_id"])) for row in rows.to_dict("records")]
        ids = [run_id for _, run_id in options]
        self._fill(self._runs, options, self.run_id if self.run_id in ids else ids[0])
        self.run_id = self._runs.value
        self._draw()

    def rows(self) -> pd.DataFrame:
        """Return the calls on screen by their start, the client's view of a call next to the server's."""
        calls = self._of_run()
        for column, value in self.where.items():
            calls = calls[calls[column].astype("str") == value]
        return calls.sort_values(["started_at_s", "call_id", "attempt", "seen_from"], ignore_index=True)[_COLUMNS]

    def _of_run(self) -> pd.DataFrame:
        assert self._tables is not None
        return self._tables.calls[self._tables.calls["run_id"] == self.run_id]

    def _draw(self) -> None:
        if self._tables is None:
            return
        self._fill(self._runs, list(self._runs.options), self.run_id)
        timeline = RunTimeline.of(Study(self._tables.runs, self._tables.calls, self._tables.events), self.run_id)
        lines = [timeline.title(), "", *timeline.lines(_WIDTH_CHARACTERS), "", *timeline.notes()]
        self._timeline.value = lines_html("The run on a line of time", lines)
        calls, rows = self._of_run(), self.rows()
        for column, widget in self._filters.items():
            levels = [str(value) for value in calls[column].drop_duplicates().sort_values() if str(value)]
            chosen = self.where.get(column, ALL)
            self._fill(widget, list(dict.fromkeys([ALL, *levels, chosen])), chosen)
        self._calls.value = table_html(table_of(f"Calls of the run: {len(rows)} of {len(calls)} rows", rows))

    def _fill(self, widget: Any, options: list[Any], chosen: str) -> None:
        """Set the options of a list and its chosen one, without counting that as a user's choice."""
        self._filling = True
        if list(widget.options) != options:
            widget.options = options
        widget.value = chosen
        self._filling = False

    def _choose(self, _: Any) -> None:
        if not self._filling:
            values = {column: str(widget.value) for column, widget in self._filters.items()}
            self.run_id, self.where = self._runs.value, {name: each for name, each in values.items() if each != ALL}


def _run_text(row: Any) -> str:
    back = "no answer" if row["returned_at_s"] != row["returned_at_s"] else f"back after {row['returned_at_s']:.3g} s"
    outcome = str(row["outcome"]).replace("_", " ")
    return f"{one_line(row['arm'])} · {row['question_id']} (seed {row['seed']}) · {outcome}, {back}"


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
            "Completion": _completion,
            "Overrun": lambda tables: picture_of(overrun_of(tables), tables, has_time=False),
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
    return picture_of(timeline_of(tables, seed=seed if seed in known else None), tables)


def _completion(tables: StudyTables) -> Picture:
    """Return the curves with the share of each arm at the deadline, in place of all their steps."""
    frame = plots.completion_frame(tables)
    timeout_s = float(tables.runs["decision_timeout_s"].iloc[0])
    ends = frame[frame["at_s"] <= timeout_s].drop_duplicates("group", keep="last")
    table = table_of("Answered by the deadline, bands at 95 %", ends.drop(columns=["at_s"]))
    return picture_of(dataclasses.replace(completion_of(tables), tables=(table,)), tables)


def _summary_html(manifest: Mapping[str, Any], tables: StudyTables) -> str:
    """Return a study's notebook summary as HTML; it reads no events."""
    study = Study(tables.runs, tables.calls, to_frame("events", []), manifest)
    return wide_html("Summary of the study", study._repr_html_())
