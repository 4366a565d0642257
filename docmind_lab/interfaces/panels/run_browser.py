"""Lists the runs of a study, and the calls and events of one of them, with filters.

A filter that is left empty keeps everything.
"""

from __future__ import annotations

from typing import Any, Final

import ipywidgets as widgets
import pandas as pd
import traitlets

from docmind_lab.analysis.conditions import with_arms
from docmind_lab.analysis.plots.look import rows_of, seconds_text
from docmind_lab.analysis.run_timeline import RunTimeline
from docmind_lab.analysis.study import Study
from docmind_lab.analysis.tables.frames import StudyTables
from docmind_lab.analysis.text import one_line
from docmind_lab.interfaces.panels.page import PANEL_CLASS, lines_html, style_and_script, table_html, text_html
from docmind_lab.interfaces.reports.tables import table_of

_RUN_COLUMNS = (
    "run_id",
    "arm",
    "question_id",
    "seed",
    "decision_timeout_s",
    "outcome",
    "returned_at_s",
    "caller_overrun_s",
    "work_overrun_s",
)
_CALL_COLUMNS = (
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
    "remaining_at_start_s",
    "outcome",
    "error_type",
    "started_after_deadline",
    "ended_after_return",
)
_EVENT_COLUMNS = ("at_s", "event", "role", "detail")


def run_rows(study: StudyTables, *, arm: str = "", outcome: str = "") -> pd.DataFrame:
    """Return the runs in the order of their arms and seeds, with outcome and both overruns.

    arm: as `conditions.with_arms` has it. outcome: of the run.
    """
    runs = with_arms(study.runs).sort_values(["arm", "decision_timeout_s", "seed", "run_id"], ignore_index=True)
    return _filter(runs, arm=arm, outcome=outcome)[list(_RUN_COLUMNS)].reset_index(drop=True)


def call_rows(
    study: StudyTables, run_id: str, *, role: str = "", kind: str = "", outcome: str = "", seen_from: str = ""
) -> pd.DataFrame:
    """Return the calls of a run by their start, the client's view of a call next to the server's."""
    calls = study.calls[study.calls["run_id"] == run_id]
    kept = _filter(calls, role=role, kind=kind, outcome=outcome, seen_from=seen_from)
    ordered = kept.sort_values(["started_at_s", "call_id", "attempt", "seen_from"], ignore_index=True)
    return ordered[list(_CALL_COLUMNS)]


def event_rows(study: StudyTables, run_id: str, *, event: str = "", role: str = "") -> pd.DataFrame:
    """Return the events of a run in the order in which they happened."""
    events = study.events[study.events["run_id"] == run_id]
    return _filter(events, event=event, role=role).sort_values("at_s", ignore_index=True)[list(_EVENT_COLUMNS)]


def levels_of(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the non-empty values of a column, in its own order if it has one, otherwise sorted."""
    values = frame[column].drop_duplicates().sort_values()
    return [str(value) for value in values if str(value)]


def _filter(frame: pd.DataFrame, **wanted: str) -> pd.DataFrame:
    for column, value in wanted.items():
        if value:
            frame = frame[frame[column].astype("str") == value]
    return frame


ALL: Final = "all"
_CALL_FILTERS: Final = {"role": "Role", "kind": "Kind", "outcome": "Outcome of calls", "seen_from": "Seen from"}
# Lines of a run's timeline beside a sidebar, on an ordinary screen.
_WIDTH_CHARACTERS: Final = 110
_NAMED: Final = {"style": {"description_width": "initial"}}


class RunBrowser(traitlets.HasTraits):
    """A notebook view of runs, and of the calls and events of one of them; every choice is a trait.

    Args:
        study: A study, or anything else with its three tables.
        choices: Traits, by name.

    Attributes:
        arm: Arm of the runs that are listed; "all" for all.
        outcome: Outcome of the runs that are listed; "all" for all.
        run_id: The run whose rows are shown.
        calls_where: Filters of the calls by column (role, kind, outcome, seen_from).
        event: Filter of the events.
    """

    arm = traitlets.Unicode(ALL)
    outcome = traitlets.Unicode(ALL)
    run_id = traitlets.Unicode("")
    calls_where: traitlets.Dict[str, str] = traitlets.Dict()
    event = traitlets.Unicode(ALL)

    def __init__(self, study: StudyTables, **choices: Any) -> None:
        super().__init__()
        self._study = study
        self._filling = False
        self._arms = widgets.Dropdown(description="Alternative", options=[ALL], **_NAMED)
        self._outcomes = widgets.Dropdown(description="Outcome", options=[ALL], **_NAMED)
        self._runs = widgets.Select(description="Runs", options=[], rows=8, layout={"width": "100%"}, **_NAMED)
        self._filters = {
            column: widgets.Dropdown(description=text, options=[ALL], **_NAMED)
            for column, text in _CALL_FILTERS.items()
        }
        self._events = widgets.Dropdown(description="Event", options=[ALL], **_NAMED)
        self._timeline, self._calls, self._happened = widgets.HTML(), widgets.HTML(), widgets.HTML()
        first, second = widgets.Box([self._arms, self._outcomes]), widgets.Box([*self._filters.values()])
        for row in (first, second):
            row.add_class("docmind-row")
        self.view = widgets.VBox([first, self._runs, self._timeline, second, self._calls, self._events, self._happened])
        self._listen()
        with self.hold_trait_notifications():
            for name, value in choices.items():
                setattr(self, name, value)
        self.show(study)

    @property
    def study(self) -> StudyTables:
        """The study whose tables are browsed."""
        return self._study

    def show(self, study: StudyTables) -> None:
        """Browse another study's tables, at the same run if they have it.

        Args:
            study: A study, or anything else with its three tables.
        """
        self._study = study
        self._list_runs()

    def calls(self) -> pd.DataFrame:
        """Return the calls on screen, as a frame."""
        return call_rows(self._study, self.run_id, **self.calls_where)

    def events(self) -> pd.DataFrame:
        """Return the events on screen, as a frame."""
        return event_rows(self._study, self.run_id, event="" if self.event == ALL else self.event)

    def _listen(self) -> None:
        self._arms.observe(lambda change: self._choose("arm", change.new), "value")
        self._outcomes.observe(lambda change: self._choose("outcome", change.new), "value")
        self._runs.observe(lambda change: self._choose("run_id", change.new or ""), "value")
        self._events.observe(lambda change: self._choose("event", change.new), "value")
        for widget in self._filters.values():
            widget.observe(self._apply_filters, "value")
        self.observe(lambda _: self._list_runs(), ["arm", "outcome"])
        self.observe(lambda _: self._show_run(), ["run_id", "calls_where", "event"])

    def _choose(self, name: str, value: str) -> None:
        # Filling a list with new options chooses among them by itself, which nobody meant.
        if not self._filling:
            setattr(self, name, value)

    def _apply_filters(self, _: Any) -> None:
        if not self._filling:
            chosen = {column: str(widget.value) for column, widget in self._filters.items()}
            self.calls_where = {column: value for column, value in chosen.items() if value != ALL}

    def _list_runs(self) -> None:
        if self._study.runs.empty:
            self._timeline.value = text_html("No run is done yet.")
            return
        everything = run_rows(self._study)
        self._set_options(self._arms, levels_of(everything, "arm"), self.arm)
        self._set_options(self._outcomes, levels_of(everything, "outcome"), self.outcome)
        rows = run_rows(
            self._study,
            arm="" if self.arm == ALL else self.arm,
            outcome="" if self.outcome == ALL else self.outcome,
        )
        options = [(_run_text(row), row.run_id) for row in rows_of(rows)]
        ids = [run_id for _, run_id in options]
        before = self.run_id
        chosen = before if before in ids else next(iter(ids), "")
        self._filling = True
        self._runs.options = options
        self._runs.value = chosen or None
        self._filling = False
        self.run_id = chosen
        if chosen == before:
            self._show_run()

    def _show_run(self) -> None:
        if not self.run_id or self.run_id not in set(self._study.runs["run_id"]):
            self._timeline.value = text_html("No run has this alternative and outcome.")
            self._calls.value = self._happened.value = ""
            return
        self._filling = True
        self._runs.value = self.run_id if self.run_id in [value for _, value in self._runs.options] else None
        self._filling = False
        study = Study(self._study.runs, self._study.calls, self._study.events)
        timeline = RunTimeline.of(study, self.run_id)
        lines = [timeline.title(), "", *timeline.lines(_WIDTH_CHARACTERS), "", *timeline.notes()]
        self._timeline.value = lines_html("The run on a line of time", lines)
        calls = call_rows(self._study, self.run_id)
        for column, widget in self._filters.items():
            self._set_options(widget, levels_of(calls, column), self.calls_where.get(column, ALL))
        self._set_options(self._events, levels_of(event_rows(self._study, self.run_id), "event"), self.event)
        shown, happened = self.calls(), self.events()
        self._calls.value = table_html(table_of(f"Calls of the run: {len(shown)} of {len(calls)} rows", shown))
        # Most events are of no role: the instant is what a row goes by.
        by_instant = happened.rename(columns={"role": "of role"})
        self._happened.value = table_html(table_of(f"Events of the run: {len(happened)} rows", by_instant))

    def _set_options(self, widget: Any, levels: list[str], chosen: str) -> None:
        """Set the options of a list and its chosen one, without counting that as a user's choice."""
        options = [ALL, *levels] if chosen in (ALL, *levels) else [ALL, *levels, chosen]
        self._filling = True
        if list(widget.options) != options:
            widget.options = options
        widget.value = chosen
        self._filling = False

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return browser_page(self)._repr_mimebundle_(**options)

    def __repr__(self) -> str:
        return f"RunBrowser({len(self._study.runs)} runs, run_id={self.run_id!r})"


def browser_page(browser: RunBrowser) -> Any:
    """Return the browser as a page of its own, with its style."""
    page = widgets.VBox([*style_and_script(), browser.view])
    page.add_class(PANEL_CLASS)
    return page


def _run_text(row: Any) -> str:
    back = "no answer" if row.returned_at_s != row.returned_at_s else f"back after {seconds_text(row.returned_at_s)}"
    return (
        f"{one_line(row.arm)} · {row.decision_timeout_s:g} s · {row.question_id} (seed {row.seed}) · "
        f"{str(row.outcome).replace('_', ' ')}, {back}"
    )
