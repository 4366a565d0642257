"""The calls of one run, with the run on a line of time, and filters. A filter that is left out keeps everything."""

from __future__ import annotations

from typing import Any, Final

import ipywidgets as widgets
import pandas as pd
import traitlets

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.run_timeline import RunTimeline
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import StudyTables
from docmind_lab.analysis.text import one_line
from docmind_lab.interfaces.panels.page import lines_html, table_html
from docmind_lab.interfaces.reports.tables import table_of

ALL: Final = "all"
_FILTERS: Final = {"role": "Role", "kind": "Kind", "outcome": "Outcome of calls", "seen_from": "Seen from"}
_COLUMNS: Final = [
    *(
        "call_id",
        "attempt",
        "seen_from",
        "kind",
        "role",
        "step",
        "started_at_s",
        "ended_at_s",
        "latency_s",
        "timeout_s",
    ),
    *("remaining_at_start_s", "outcome", "error_type", "started_after_deadline", "ended_after_return"),
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
        calls, shown = self._of_run(), self.rows()
        for column, widget in self._filters.items():
            levels = [str(value) for value in calls[column].drop_duplicates().sort_values() if str(value)]
            chosen = self.where.get(column, ALL)
            self._fill(widget, list(dict.fromkeys([ALL, *levels, chosen])), chosen)
        self._calls.value = table_html(table_of(f"Calls of the run: {len(shown)} of {len(calls)} rows", shown))

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
